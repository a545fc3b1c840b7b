// One event as one line for people. All text in it is cleaned; `--json` has the whole event.
import type { Event, Json } from '../../kernel/index.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import { type CallBlock, CallBlocks, callSubject, callText, newBlock, signOf } from './blocks.ts'
import { decisionText, lastLineOf, noteText, outcomeOf } from './outcome.ts'
import { isCheckpoint } from '../../view/node-stops.ts'

/**
 * Returns a function that writes events of one or several sessions. It remembers calls that were asked about, to show a
 * person's changes to them.
 */
export function eventLineWriter(): (event: Event, session?: string) => string {
  const asked = new Map<string, Json>()
  const blocks = new CallBlocks((block) => block)
  return (event, session = '') => {
    blocks.take({ ...event, session })
    const block = 'call' in event ? blocks.at(session, event.call) : undefined
    if (event.type === 'agent.message')
      for (const [i, { gate, args }] of event.calls.entries())
        if (gate?.type === 'ask') asked.set(`${session} ${event.seq}.${i}`, args)
    const at = new Date(event.at).toISOString().slice(11, 19)
    const before = 'call' in event ? asked.get(`${session} ${event.call}`) : undefined
    return `${String(event.seq).padStart(5)}  ${at}  ${event.type.padEnd(24)}  ${eventText(event, before, block)}`.trimEnd()
  }
}

function eventText(event: Event, asked: Json | undefined, block: CallBlock | undefined): string {
  switch (event.type) {
    case 'user.message':
    case 'agent.message': {
      const parts = event.type === 'agent.message' && isCheckpoint(event) ? [] : event.parts
      const said = parts.map((part) => (part.type === 'text' ? part.text : `(${part.type})`)).join(' ')
      const calls = event.type === 'agent.message' ? event.calls : []
      return [oneLine(said), ...calls.map(({ tool, args }) => `→ ${callSubject({ tool, args })}`)]
        .filter((text) => text !== '')
        .join('  ')
    }
    case 'user.tool_confirmation':
      return `${event.call} ${decisionText(event, asked)}`
    case 'user.custom_tool_result':
      return `${event.call} ${oneLine(event.content)}`
    case 'user.interrupt':
      return `${event.mode}${event.by === undefined ? '' : ` by ${oneLine(event.by)}`}${event.why ? `: ${oneLine(event.why)}` : ''}`
    case 'user.withdraw':
      return `message ${event.message}`
    case 'user.unschedule':
      return oneLine(event.key)
    case 'user.rename':
      return `${oneLine(event.title)}${event.by === undefined ? '' : ` by ${oneLine(event.by)}`}`
    case 'session.created':
      return event.fork ? `forked from ${shownId(event.fork.session)} at ${event.fork.seq}` : oneLine(event.agent)
    case 'session.imported':
      return `from a file, where it was ${shownId(event.from)}`
    case 'agent.tool_use':
    case 'agent.custom_tool_use':
    case 'call.reviewed':
      return block ? `${event.call} ${callSubject(block)}` : event.call
    case 'agent.tool_result':
      return `${event.call} ${resultText(event, block ?? newBlock({ tool: 'call', args: {} }))}`
    case 'model.failed':
      return `${event.class}: ${oneLine(event.message)}${event.partial ? `  cut after: ${oneLine(event.partial)}` : ''}`
    case 'run.deferred':
      return `tried again at ${new Date(event.retryAt).toISOString()}: ${oneLine(event.message)}`
    case 'note.added':
      return `${event.kind}: ${oneLine(noteText(event))}`
    case 'user.schedule':
    case 'wake.scheduled':
      return `${new Date(event.due).toISOString()} ${oneLine(event.reason)}`
    case 'run.ending':
    case 'run.settled':
      return event.outcome.type === 'failed' ? `failed: ${oneLine(event.outcome.failure.message)}` : event.outcome.type
    default:
      return ''
  }
}

/** The call as everywhere, and the beginning of its result. */
function resultText(event: Extract<Event, { type: 'agent.tool_result' }>, block: CallBlock): string {
  const outcome = block.outcome ?? outcomeOf(event)
  const ended = { ...block, status: event.status, outcome }
  const { content } = event
  const shown = outcome.command
    ? lastLineOf(outcome)
    : typeof content === 'string' && outcome.good
      ? oneLine(content)
      : ''
  return `${signOf(ended, '')} ${callText(ended)}${shown === '' ? '' : `  ${shown}`}`
}
