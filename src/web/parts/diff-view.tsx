// The line diff of a change.
import { useMemo } from 'react'
import { exposedLine } from '../../view/clean.ts'
import { type DiffLine, diffLines } from '../../view/line-diff.ts'
import { isObject, asList, asString } from '../../view/untrusted-json.ts'
import { Text } from './exact-text.tsx'

/** `exposed`: the line looks like another one, so every blank and every unusual character is shown by its code. */
type ShownDiffLine = DiffLine & { readonly exposed?: boolean }

const SHOWN = 2_000
const WORDS = { '+': 'added', '-': 'removed', ' ': '', '@': 'hunk', '\\': 'note' } as const

export function Diff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  return <DiffLines lines={lines} />
}

/** A difference that was written as text, below the two lines that name its sides. */
export function DiffText({ text }: { readonly text: string }) {
  const lines = text.split('\n').slice(2)
  return <DiffLines lines={lines.flatMap((line) => readDiffLine({ mark: line.slice(0, 1), text: line.slice(1) }))} />
}

/** The file changes in a call's preview; nothing if it has none. */
export function FileChanges({ preview }: { readonly preview: unknown }) {
  const files = isObject(preview) ? asList(preview['files']).filter(isObject) : []
  const warnings = isObject(preview) ? asList(preview['warnings']) : []
  return (
    <>
      {warnings.map((warning) => (
        <p className="status warn" key={asString(warning)}>
          <Text text={asString(warning)} />
        </p>
      ))}
      {files.map(({ path, state, added, removed, lines }) => (
        <section className="change" key={asString(path)}>
          <h3>
            <Text mono text={asString(path)} />{' '}
            <span className="dim">
              {asString(state)}, +{Number(added)} −{Number(removed)}
            </span>
          </h3>
          <DiffLines lines={asList(lines).flatMap(readDiffLine)} />
        </section>
      ))}
    </>
  )
}

function readDiffLine(line: unknown): readonly ShownDiffLine[] {
  if (!isObject(line)) return []
  const { mark, text, exposed } = line
  return Object.hasOwn(WORDS, asString(mark))
    ? [{ mark: mark as ShownDiffLine['mark'], text: asString(text), exposed: exposed === true }]
    : []
}

function DiffLines({ lines }: { readonly lines: readonly ShownDiffLine[] }) {
  if (lines.length === 0) return <p className="dim">Nothing would change.</p>
  return (
    <div className="diff mono" tabIndex={0} role="region" aria-label="changes">
      {lines.slice(0, SHOWN).map(({ mark, text, exposed }, i) => (
        <div key={i} className={`diff-line ${WORDS[mark] || 'same'}`}>
          <span className="diff-mark" aria-hidden>
            {mark}
          </span>
          <span className="out-of-sight">{WORDS[mark]}</span>
          <Text mono text={exposed ? exposedLine(text) : text} />
        </div>
      ))}
      {lines.length > SHOWN ? <p className="dim">{lines.length - SHOWN} more lines</p> : null}
    </div>
  )
}
