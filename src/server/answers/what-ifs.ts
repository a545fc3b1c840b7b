// The handler of what-ifs: a session is lived again in memory with something changed. It writes nothing, and runs only
// tools that read: whatever the role, no request can allow more.
import { Fault } from '../../kernel/index.ts'
import { harnessParts } from '../../harness.ts'
import type { WhatIfOptions } from '../../replay.ts'
import { type ApiAnswer, type ApiRequest, requireCard, type ServerState } from '../server-host.ts'
import type { WhatIfAnswer, WhatIfBody } from '../wire.ts'
import { checkModel } from './session-actions.ts'

/** How many are lived at once by one server. */
const AT_ONCE_MAX = 2
const running = new WeakMap<ServerState, number>()

export async function handleWhatIf(asked: ApiRequest): Promise<ApiAnswer> {
  const { host, server } = asked
  const card = await requireCard(asked)
  const { session, agent } = card
  const { model: name, instructions, message, ...options } = asked.body as WhatIfBody
  const harness = await host.harnessOf(card)
  await checkModel(harness, name)
  const parts = harnessParts(harness)
  if (parts === null) throw new Fault('unsupported', 'This server has no agents of its own to ask what if.')
  const count = running.get(server) ?? 0
  if (count >= AT_ONCE_MAX) throw new Fault('too_many', 'Other what-ifs are being lived. Try again when one has ended.')
  running.set(server, count + 1)
  const gone = new AbortController()
  const leave = (): void => gone.abort()
  asked.response.once('close', leave)
  server.closing.addEventListener('abort', leave, { once: true })
  try {
    const { changedAgent, readLog, whatIf } = await import('../../replay.ts')
    const changes = {
      agent,
      ...(name === undefined ? {} : { model: parts.model(name) }),
      ...(instructions === undefined ? {} : { instructions }),
    }
    const tried = await whatIf(
      { store: host.store, session },
      {
        ...options,
        ...(message === undefined ? {} : { message: message as NonNullable<WhatIfOptions['message']> }),
        agent: changedAgent(parts.options, changes),
        signal: gone.signal,
      },
    )
    const events = (await readLog(tried.store, session)).slice(tried.from)
    const { from, end, changed, drift, missing, cost: costUsd, settled, text, parked } = tried
    const told = { session, from, end, events, changed, drift, missing, costUsd, settled, text, parked }
    return { json: told satisfies WhatIfAnswer }
  } finally {
    running.set(server, (running.get(server) ?? 1) - 1)
    server.closing.removeEventListener('abort', leave)
  }
}
