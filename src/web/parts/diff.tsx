// What would change, line by line.
import { useMemo } from 'react'
import { exposedLine } from '../../view/clean.ts'
import { type DiffLine, diffLines } from '../../view/diff.ts'
import { isObject, listOf, stringOf } from '../../view/json.ts'
import { Text } from './text.tsx'

/** `exposed`: two lines look the same, so every blank and every letter that is not plain is shown by its code. */
type Line = DiffLine & { readonly exposed?: boolean }

const SHOWN = 2_000
const WORDS = { '+': 'added', '-': 'removed', ' ': '', '@': 'hunk', '\\': 'note' } as const

export function Diff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  return <Lines lines={lines} />
}

/** The changes of files that a server says a call would make; nothing if it says none. */
export function Changes({ preview }: { readonly preview: unknown }) {
  const files = isObject(preview) ? listOf(preview['files']).filter(isObject) : []
  const warnings = isObject(preview) ? listOf(preview['warnings']) : []
  return (
    <>
      {warnings.map((warning) => (
        <p className="status warn" key={stringOf(warning)}>
          <Text text={stringOf(warning)} />
        </p>
      ))}
      {files.map(({ path, state, added, removed, lines }) => (
        <section className="change" key={stringOf(path)}>
          <h3>
            <Text mono text={stringOf(path)} />{' '}
            <span className="dim">
              {stringOf(state)}, +{Number(added)} −{Number(removed)}
            </span>
          </h3>
          <Lines lines={listOf(lines).flatMap(lineIn)} />
        </section>
      ))}
    </>
  )
}

function lineIn(line: unknown): readonly Line[] {
  if (!isObject(line)) return []
  const { mark, text, exposed } = line
  return Object.hasOwn(WORDS, stringOf(mark))
    ? [{ mark: mark as Line['mark'], text: stringOf(text), exposed: exposed === true }]
    : []
}

function Lines({ lines }: { readonly lines: readonly Line[] }) {
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
