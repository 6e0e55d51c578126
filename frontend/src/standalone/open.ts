/** The page of an exported file: the same as in TensorBoard, over the answers that lie in the file itself. */
import { mount } from "../shell/mount";
import { PackedAnswers, type Unpack } from "./packedAnswers";

export function open(parent: HTMLElement, unpack: Unpack): void {
  mount(parent, new PackedAnswers(document, unpack));
}
