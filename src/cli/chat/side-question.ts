// `/btw QUESTION`: one answer from what the session holds now, that its conversation never has. It is asked in a copy,
// without tools, so the session stays as it is; the copy's log has the question, the answer and what they cost.
import { oneLine } from '../../view/clean.ts'
import { usdText } from '../../view/usd.ts'
import { titleFromText } from '../../view/title.ts'
import { CliError, EXIT } from '../exit.ts'
import { loadMarkdown } from '../present/markdown.ts'
import { modelText } from '../present/markdown-stream.ts'
import { shortId } from '../present/print.ts'
import { ownerFields } from '../state/command-context.ts'
import { readAllEvents } from '../state/read-log.ts'
import { startSessionIn } from '../state/session-folders.ts'
import type { ChatControl } from './chat-control.ts'

/** The label of such copies: `/resume` leaves them out. */
export const SIDE_LABEL = 'aside'

export async function askAside(chat: ChatControl, words: readonly string[]): Promise<void> {
  const { session, options, view } = chat
  const question = words.join(' ')
  if (question === '') throw new CliError(EXIT.usage, 'The question is missing. Usage: /btw what does mean() return?')
  if (!session) return view.note('Nothing was said yet: ask it as a message.')
  const { place, by, setup, terminal } = options
  // While a run works, the copy ends where the last one had: open calls would be asked about again.
  const events = await readAllEvents(place.store, session.id)
  const last = events.at(-1)
  const settled = events.findLast(({ type }) => type === 'run.settled')
  const isOpen = events.findLast(({ type }) => type === 'run.started' || type === 'run.settled')?.type === 'run.started'
  const at = isOpen ? (settled?.seq ?? 1) : (last?.seq ?? 1)
  const own = ownerFields(place, await place.store.card(session.id), by)
  const about = {
    labels: { ...own.labels, [SIDE_LABEL]: 'true' },
    metadata: { ...own.metadata, title: titleFromText(`btw: ${question}`) ?? 'btw' },
  }
  view.note('  asking aside …')
  const copy = await startSessionIn(place, setup.folder, (as) => session.fork({ ...as, ...about, at }))
  const result = await copy.run(question, { tools: [] })
  if (result.status !== 'completed') {
    const why = result.status === 'failed' ? result.failure.message : result.status
    return view.note(`! It was not answered: ${oneLine(why, 400)}`)
  }
  await loadMarkdown()
  // Said at once: another answer may be streaming.
  terminal.out.say('model', modelText(result.text, terminal.out.style))
  const cost = result.cost.micros > 0 ? ` · ${usdText(result.cost.micros)}` : ''
  view.note(`  aside: the conversation does not have it · ${shortId(copy.id)}${cost}`)
}
