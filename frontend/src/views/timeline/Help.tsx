/** How to move, for those who ask. */
const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ["W, S or + −", "zoom in and out"],
  ["A, D", "move left and right"],
  ["← →", "previous and next event of the row"],
  ["↑ ↓", "the row above and below"],
  ["Enter", "select the event; once more: zoom to it"],
  ["F", "zoom to the selected event"],
  ["0", "the whole window"],
  ["Esc", "select nothing"],
  ["Drag", "move; with Shift: zoom to what is marked"],
  ["Wheel", "zoom, once the drawing was clicked; before that with Ctrl. With Shift: move"],
  ["Double click", "zoom to the event"],
];

export function Help() {
  return (
    <details class="timeline-help">
      <summary class="button button-small">Keys</summary>
      <dl>
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>{keys}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
