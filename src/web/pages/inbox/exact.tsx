// Exactly what would happen: the arguments, byte for byte, with what cannot be seen shown by its code; how long they are; the digest that
// a decision is bound to; and what would change in files as they are now.
import { useMemo } from 'react'
import type { WirePending } from '../../../server/wire.ts'
import { editTexts } from '../../../view/edited.ts'
import { isObject, listOf, stringOf } from '../../../view/json.ts'
import { CopyButton } from '../../parts/button.tsx'
import { Changes, Diff } from '../../parts/diff.tsx'
import { TriangleAlert } from '../../parts/icons.ts'
import { Json } from '../../parts/json.tsx'
import { Text } from '../../parts/text.tsx'

const OPEN_LEVELS = 4
const DIGEST_CHARS = 12

export function Exact({ pending, isEdited }: { readonly pending: WirePending; readonly isEdited: boolean }) {
  const { args, digest, preview, edited } = pending
  const chars = useMemo(() => JSON.stringify(args).length, [args])
  // What the files would become is known of the call as it was asked, not of what is being written.
  const files = isObject(preview) && !isEdited ? listOf(preview['files']) : []
  return (
    <>
      <section className="exact">
        <header>
          <h3>Exact arguments</h3>
          <span className="dim">{chars.toLocaleString('en')} characters</span>
          {digest === undefined ? null : (
            <span className="exact-digest dim">
              sha256{' '}
              <code title={digest}>
                <Text text={digest.slice(0, DIGEST_CHARS)} />…
              </code>
              <CopyButton text={digest} label="Copy the digest" />
            </span>
          )}
        </header>
        <div className="exact-bytes" tabIndex={0} role="region" aria-label="Exact arguments">
          <Json value={args} open={OPEN_LEVELS} />
        </div>
      </section>
      {edited === undefined ? null : (
        <section className="exact">
          <header>
            <h3>
              <Text text={`Edited by ${edited.by}`} />
            </h3>
          </header>
          <Diff {...editTexts(edited.args, args)} />
        </section>
      )}
      {files.length === 0 ? null : (
        <section className="exact">
          <header>
            <h3>Changes to the files as they are now</h3>
          </header>
          <Changes preview={{ files: [...files] }} />
        </section>
      )}
    </>
  )
}

/** What may mislead whoever reads it, and what was said of it before. */
export function Warnings({ pending: { preview, denied, covered } }: { readonly pending: WirePending }) {
  const said = isObject(preview) ? preview : {}
  const trouble = stringOf(said['trouble'])
  const warnings = [
    ...listOf(said['warnings']).map(stringOf),
    ...(trouble === '' ? [] : [`As things are it would fail: ${trouble}`]),
    ...(denied ? ['The same call was denied before in this run.'] : []),
    ...(covered ? [`${covered.by} allowed calls like this for this run, with call ${covered.call}.`] : []),
  ]
  return warnings.map((warning) => (
    <p className="warning" key={warning}>
      <TriangleAlert size={15} aria-hidden />
      <Text text={warning} />
    </p>
  ))
}
