// The list of keys (?), from the same data that the key listener uses. Loaded when shown.
import { Dialog } from '../parts/dialog.tsx'
import { KEYS, keyCaps, type KeyScope } from './key-commands.ts'

const GROUPS: readonly (readonly [KeyScope, string])[] = [
  ['anywhere', 'Anywhere'],
  ['list', 'In a list'],
  ['session', 'In a session'],
]

export function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose} wide>
      <KeyList />
    </Dialog>
  )
}

/** All keys and their actions. */
export function KeyList() {
  return (
    <>
      <div className="keys">
        {GROUPS.map(([where, name]) => (
          <section key={where}>
            <h3>{name}</h3>
            <dl>
              {KEYS.filter((row) => row.where === where).map(({ keys, does }) => (
                <div key={keys}>
                  <dt>{does}</dt>
                  <dd>
                    {keyCaps(keys).map((cap, i) => (
                      <kbd key={i}>{cap}</kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p className="dim">Allow and Deny have no key: move the focus to them, then press Enter.</p>
    </>
  )
}
