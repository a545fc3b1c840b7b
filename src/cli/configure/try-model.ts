// One tiny call to a model, to see that its name and its key work and what it costs. `doctor` and `init` make it.
import type { Model, ModelFailure, Reply, Request } from '../../kernel/index.ts'
import { timerClock } from '../state/mcp-servers.ts'

const CALL_MS = 30_000

export function callModelOnce(model: Model, session: string): Promise<Reply | ModelFailure> {
  const signal = AbortSignal.timeout(CALL_MS)
  const sleep = (ms: number): Promise<void> => new Promise((resolve) => void timerClock.timer(ms, resolve))
  const request: Request = {
    session,
    seq: 1,
    instructions: 'Answer with one word.',
    tools: [],
    allow: 'all',
    boost: false,
    messages: [{ role: 'user', seq: 1, parts: [{ type: 'text', text: 'Say ok.' }] }],
  }
  return model.call(request, { signal, emit: () => {}, sleep, clock: timerClock })
}
