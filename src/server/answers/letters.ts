// Dead letters of consumers: settled runs that one could not be told of after all its tries. They are in the logs of
// the consumers' lanes, which belong to nobody.
import { isLaneAgent } from '../../view/lanes.ts'
import { asString, isObject } from '../../view/untrusted-json.ts'
import { HttpRefusal, missingSessionRefusal } from '../refusals.ts'
import { type ApiAnswer, type ApiRequest, requireCard } from '../server-host.ts'
import type { LetterBody, LetterDecidedAnswer, LettersAnswer } from '../wire.ts'

const LISTED = 50

export async function handleLetters({ host, principal }: ApiRequest): Promise<ApiAnswer> {
  refuseOwnReach(principal)
  const { deadLetters } = await import('../../queues/dead-letters.ts')
  const all = await deadLetters(host.harness)
  const letters = all
    .slice(-LISTED)
    .toReversed()
    .map(({ lane, key, consumer, about, tries, reason, at }) => {
      return { lane, key, consumer, session: isObject(about) ? asString(about['session']) : '', tries, reason, at }
    })
  return { json: { letters, count: all.length, now: host.store.now() } satisfies LettersAnswer }
}

export async function handleDecideLetter(asked: ApiRequest): Promise<ApiAnswer> {
  const { host, principal } = asked
  refuseOwnReach(principal)
  const { lane, key, decision } = asked.body as LetterBody
  const card = await requireCard({ ...asked, params: { id: lane } })
  if (!isLaneAgent(card.agent)) throw missingSessionRefusal(lane)
  const { decideDeadLetter } = await import('../../queues/dead-letters.ts')
  const decided = await decideDeadLetter(host.harness, { lane, key, decision, by: principal.name })
  return { json: decided satisfies LetterDecidedAnswer }
}

function refuseOwnReach({ reach }: ApiRequest['principal']): void {
  if (reach === 'own')
    throw new HttpRefusal(403, 'forbidden', 'Dead letters belong to nobody. They need a token with the reach `all`.')
}
