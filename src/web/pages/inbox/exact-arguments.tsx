// Exactly what a call would do: its arguments byte for byte, with invisible characters shown by code, their length, the
// digest that the decision is bound to, and the changes to files as they are now.
import { useMemo } from 'react'
import type { WirePending } from '../../../server/wire.ts'
import { editTexts } from '../../../view/argument-changes.ts'
import { SCRIPT } from '../../../view/script-cell.ts'
import { isObject, asList, asString } from '../../../view/untrusted-json.ts'
import { CopyButton } from '../../parts/button.tsx'
import { Diff, DiffText, FileChanges } from '../../parts/diff-view.tsx'
import { TriangleAlert } from '../../parts/icons.ts'
import { JsonTree } from '../../parts/json-tree.tsx'
import { ScriptProgram } from '../../parts/script-program.tsx'
import { Text } from '../../parts/exact-text.tsx'

const OPEN_LEVELS = 4
const DIGEST_CHARS = 12

export function ExactArguments({ pending, isEdited }: { readonly pending: WirePending; readonly isEdited: boolean }) {
  const { tool, args, digest, preview, edited } = pending
  const chars = useMemo(() => JSON.stringify(args).length, [args])
  // The preview belongs to the original arguments, not to edited ones.
  const files = isObject(preview) && !isEdited ? asList(preview['files']) : []
  const { script = null, diff = '' } = tool === SCRIPT && isObject(args) ? args : {}
  return (
    <>
      {script === null ? null : (
        <section className="exact">
          <header>
            <h3>The whole program</h3>
          </header>
          <ScriptProgram program={asString(script)} />
          {diff === '' ? null : (
            <>
              <h3>What differs from the saved script</h3>
              <DiffText text={asString(diff)} />
            </>
          )}
        </section>
      )}
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
          <JsonTree value={args} open={OPEN_LEVELS} />
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
          <FileChanges preview={{ files: [...files] }} />
        </section>
      )}
    </>
  )
}

/** Warnings about the call, and earlier decisions on the same call. */
export function PendingWarnings({ pending: { preview, denied, covered } }: { readonly pending: WirePending }) {
  const said = isObject(preview) ? preview : {}
  const trouble = asString(said['trouble'])
  const warnings = [
    ...asList(said['warnings']).map(asString),
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
