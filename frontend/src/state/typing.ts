/** Whether a key pressed there is text for something: no shortcut may use it. */
export function isTyping(target: EventTarget | null): boolean {
  const element = target as Partial<HTMLElement> | null;
  if (typeof element?.tagName !== "string") return false;
  if (element.isContentEditable) return true;
  if (element.tagName !== "INPUT") return element.tagName === "TEXTAREA" || element.tagName === "SELECT";
  return !["checkbox", "radio", "button"].includes((element as HTMLInputElement).type);
}
