/** All keys of the page that is shown, in a dialog. */
import { useContext } from "preact/hooks";
import { useModal } from "../../components/useModal";
import type { Shortcut } from "../../keys/shortcuts";
import { ShortcutContext } from "../../keys/useShortcut";

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** "mod+k" as on the reader's keyboard. */
export function keyNames(keys: string): string[] {
  return keys
    .split(" ")
    .map((key) =>
      key.startsWith("mod+")
        ? `${IS_MAC ? "⌘" : "Ctrl"} ${key.slice(4).toUpperCase()}`
        : key === "Escape"
          ? "Esc"
          : key,
    );
}

export function Keys({ keys }: { keys: string }) {
  return (
    <>
      {keyNames(keys).map((name, place) => (
        <kbd key={place}>{name}</kbd>
      ))}
    </>
  );
}

export function KeyHelp({ onClose }: { onClose: () => void }) {
  const shortcuts = useContext(ShortcutContext);
  const dialog = useModal();
  return (
    <dialog
      ref={dialog}
      class="sheet key-help"
      aria-labelledby="key-help-title"
      data-testid="key-help"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div class="sheet-head">
        <h2 id="key-help-title">Keys</h2>
        <button type="button" class="button button-small" onClick={onClose} aria-label="Close the list of keys">
          ✕
        </button>
      </div>
      <div class="key-groups">
        {byGroup(shortcuts.all()).map(([group, members]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {members.map(({ label, keys }) => (
                <div key={label}>
                  <dt>
                    {keys.map((one, place) => (
                      <span key={one}>
                        {place > 0 && <span class="muted"> or </span>}
                        <Keys keys={one} />
                      </span>
                    ))}
                  </dt>
                  <dd>{label}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p class="muted small">Keys do nothing while you type in a field.</p>
    </dialog>
  );
}

interface Line {
  label: string;
  keys: string[];
}

/** Shortcuts by group, those that do the same in one line. */
export function byGroup(shortcuts: readonly Shortcut[]): [group: string, lines: Line[]][] {
  const groups = new Map<string, Map<string, Line>>();
  for (const { group, label, keys } of shortcuts) {
    if (label === "") continue;
    const lines = groups.get(group) ?? new Map<string, Line>();
    groups.set(group, lines);
    const line = lines.get(label) ?? { label, keys: [] };
    lines.set(label, line);
    line.keys.push(keys);
  }
  return [...groups].map(([group, lines]) => [group, [...lines.values()]]);
}
