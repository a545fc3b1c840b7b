// The rows of model requests and of replies in progress: reasoning collapsed, text as Markdown, and a graph's state as
// its checkpoint.
import { memo } from 'react'
import type { Part } from '../../../kernel/index.ts'
import { oneLine } from '../../../view/clean.ts'
import { parseJson } from '../../../view/untrusted-json.ts'
import { isCheckpoint } from '../../../view/node-stops.ts'
import { countNoun, textOf } from '../../../view/shown-text.ts'
import type { TurnRow } from '../../../view/timeline.ts'
import type { LiveReply } from '../../data/live-reply.ts'
import { OutLink } from '../../parts/button.tsx'
import { ChevronRight } from '../../parts/icons.ts'
import { JsonTree } from '../../parts/json-tree.tsx'
import { Markdown } from '../../parts/markdown-view.tsx'
import { StatusLabel } from '../../parts/status-label.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { FileChip } from './result-files.tsx'
import { type RowContext, RowLayout } from './row-layout.tsx'

const PREVIEW = 160

export const TurnLine = memo(function TurnLine({
  row,
  around,
}: {
  readonly row: TurnRow
  readonly around: RowContext
}) {
  const { seq, n, state, usage, parts, calls, route, missed, verdict } = row
  const key = `turn ${seq}`
  const isClosed = around.isOpen(key)
  const isStep = isCheckpoint(row)
  const text = isStep ? '' : textOf(parts)
  const name = `${isStep ? 'Step' : 'Turn'}${around.isNumbered ? ` ${n}` : ''}`
  return (
    <RowLayout
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
        {state === 'replied' ? null : <StatusLabel of={state === 'asked' ? 'running' : state} words={WORDS[state]} />}
        {verdict === null || verdict === 'final' || verdict === 'continue' ? null : (
          <StatusLabel of="lost" words={verdict.replaceAll('_', ' ')} />
        )}
        {route === null ? null : (
          <span className="dim small">
            <Text text={route} />
          </span>
        )}
        {missed ? <StatusLabel of="limit" words="cache missed" /> : null}
        {isClosed ? (
          <span className="line-preview dim">
            {text === '' ? '' : <Text text={oneLine(text, PREVIEW)} />}{' '}
            {calls.length > 0 ? countNoun(calls.length, 'call') : ''}
          </span>
        ) : null}
      </div>
      {isClosed ? null : <MessageParts parts={parts} isStep={isStep} session={around.session} />}
    </RowLayout>
  )
})

const WORDS = {
  asked: 'asks the model',
  failed: 'failed',
  interrupted: 'interrupted',
  lost: 'attempt lost',
  replied: '',
} as const

/** The parts of a reply, in order. */
export function MessageParts({
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

/** A graph's reply is its state, for programs. */
function Checkpoint({ text }: { readonly text: string }) {
  return (
    <details className="thinking">
      <summary>
        <span aria-hidden>⎔</span> checkpoint
      </summary>
      <JsonTree value={parseJson(text) ?? text} open={2} />
    </details>
  )
}

/** Longer texts in progress are not rendered as Markdown, which would be slow. */
const MARKDOWN_MAX = 20_000

/** The reply in progress. It is not a live region: screen readers get the whole reply when it is complete. */
export function LiveReplyLine({ said }: { readonly said: LiveReply }) {
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
