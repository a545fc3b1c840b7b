// Rows of a request to the model and of what is being said: thinking closed, the text as Markdown, what a graph keeps as its checkpoint.
import { memo } from 'react'
import type { Part } from '../../../kernel/index.ts'
import { oneLine } from '../../../view/clean.ts'
import { parsed } from '../../../view/json.ts'
import { isCheckpoint } from '../../../view/node-stops.ts'
import { counted, textOf } from '../../../view/text.ts'
import type { TurnRow } from '../../../view/timeline.ts'
import type { Said } from '../../data/said.ts'
import { OutLink } from '../../parts/button.tsx'
import { ChevronRight } from '../../parts/icons.ts'
import { Json } from '../../parts/json.tsx'
import { Markdown } from '../../parts/markdown.tsx'
import { Status } from '../../parts/status.tsx'
import { Text } from '../../parts/text.tsx'
import { FileChip } from './files.tsx'
import { type Around, Line } from './line.tsx'

const PREVIEW = 160

export const TurnLine = memo(function TurnLine({ row, around }: { readonly row: TurnRow; readonly around: Around }) {
  const { seq, n, state, usage, parts, calls, route, missed, verdict } = row
  const key = `turn ${seq}`
  const isClosed = around.isOpen(key)
  const isStep = isCheckpoint(row)
  const text = isStep ? '' : textOf(parts)
  const name = `${isStep ? 'Step' : 'Turn'}${around.isNumbered ? ` ${n}` : ''}`
  return (
    <Line
      kind="turn"
      seq={seq}
      at={row.at}
      around={around}
      took={row.endedAt === null ? null : row.endedAt - row.at}
      tokens={usage ? usage.inputTokens + usage.outputTokens : null}
      cost={row.cost}
    >
      <div className="line-head">
        <button
          type="button"
          className="line-toggle"
          aria-expanded={!isClosed}
          aria-label={`${isClosed ? 'Open' : 'Close'} ${name}`}
          onClick={() => around.onToggle(key)}
        >
          <ChevronRight size={14} aria-hidden className={isClosed ? '' : 'turned'} />
          <strong>{name}</strong>
        </button>
        {state === 'replied' ? null : <Status of={state === 'asked' ? 'running' : state} words={WORDS[state]} />}
        {verdict === null || verdict === 'final' || verdict === 'continue' ? null : (
          <Status of="lost" words={verdict.replaceAll('_', ' ')} />
        )}
        {route === null ? null : (
          <span className="dim small">
            <Text text={route} />
          </span>
        )}
        {missed ? <Status of="limit" words="cache missed" /> : null}
        {isClosed ? (
          <span className="line-preview dim">
            {text === '' ? '' : <Text text={oneLine(text, PREVIEW)} />}{' '}
            {calls.length > 0 ? counted(calls.length, 'call') : ''}
          </span>
        ) : null}
      </div>
      {isClosed ? null : <Parts parts={parts} isStep={isStep} session={around.session} />}
    </Line>
  )
})

const WORDS = {
  asked: 'asks the model',
  failed: 'failed',
  interrupted: 'interrupted',
  lost: 'attempt lost',
  replied: '',
} as const

/** What a reply says, in its order. */
export function Parts({
  parts,
  isStep = false,
  session,
}: {
  readonly parts: readonly Part[]
  readonly isStep?: boolean
  readonly session: string
}) {
  if (isStep) return <Checkpoint text={textOf(parts)} />
  return (
    <>
      {parts.map((part, i) => {
        if (part.type === 'text') return part.text === '' ? null : <Markdown key={i} text={part.text} />
        if (part.type === 'reasoning') return part.text === '' ? null : <Thinking key={i} text={part.text} />
        if (part.type === 'blob') return <FileChip key={i} session={session} file={part} />
        if (part.type === 'source')
          return (
            <div key={i}>
              <OutLink url={part.url}>
                <Text text={part.title ?? part.url} />
              </OutLink>
            </div>
          )
        return (
          <div key={i} className="dim">
            <Text
              text={`${part.type}: ${'name' in part && part.name !== undefined ? part.name : 'tool' in part ? part.tool : part.media}`}
            />
          </div>
        )
      })}
    </>
  )
}

function Thinking({ text }: { readonly text: string }) {
  return (
    <details className="thinking">
      <summary>
        <span aria-hidden>∴</span> thinking <span className="dim">{text.length.toLocaleString('en')} characters</span>
      </summary>
      <Text as="block" text={text} />
    </details>
  )
}

/** The reply of a graph is its state, for programs. */
function Checkpoint({ text }: { readonly text: string }) {
  return (
    <details className="thinking">
      <summary>
        <span aria-hidden>⎔</span> checkpoint
      </summary>
      <Json value={parsed(text) ?? text} open={2} />
    </details>
  )
}

/** Read as Markdown while it comes, as long as that is quick. */
const MARKDOWN_MAX = 20_000

/** What is said now. Not a live region: a reader is told the whole reply when it is there. */
export function SayingLine({ said }: { readonly said: Said }) {
  return (
    <div className="line saying" data-depth={0}>
      <span className="line-seq" aria-hidden>
        ▌
      </span>
      <div className="line-main">
        {said.parts.map(({ kind, text }, i) => {
          if (kind === 'reasoning')
            return (
              <p className="dim" key={i}>
                <span aria-hidden>∴</span> thinking… <Text text={oneLine(text.slice(-PREVIEW), PREVIEW)} />
              </p>
            )
          if (kind === 'arguments')
            return (
              <p className="dim" key={i}>
                writes a call… {text.length.toLocaleString('en')} characters
              </p>
            )
          return text.length > MARKDOWN_MAX ? (
            <Text key={i} as="block" text={text.slice(-MARKDOWN_MAX)} />
          ) : (
            <Markdown key={i} text={text} />
          )
        })}
      </div>
    </div>
  )
}
