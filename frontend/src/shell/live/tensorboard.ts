/**
 * TensorBoard tells the pages in its iframes when it has loaded data again (its button, or "Reload data" in its settings): the
 * message `experimental.DataReloaded` over a channel that the page opens. This is all of that protocol that we need.
 */
import { tensorBoardWindow } from "../../state/tensorboard";

const BOOTSTRAP = "experimental.bootstrap";
const RELOADED = "experimental.DataReloaded";

interface Message {
  type: string;
  id: number;
  isReply: boolean;
}

/** Calls back with each reload, until the returned function is called; never where no TensorBoard is around this page. */
export function onReload(callback: () => void): () => void {
  const around = tensorBoardWindow();
  if (!around) return () => {};
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = ({ data }: MessageEvent<string>) => {
    const message = parse(data);
    if (!message || message.isReply) return;
    port1.postMessage(
      JSON.stringify({ type: message.type, id: message.id, payload: null, error: null, isReply: true }),
    );
    if (message.type === RELOADED) callback();
  };
  around.postMessage(BOOTSTRAP, "*", [port2]);
  return () => port1.close();
}

function parse(text: unknown): Message | null {
  try {
    return JSON.parse(String(text)) as Message;
  } catch {
    return null;
  }
}
