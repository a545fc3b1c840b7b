// A question that is open in an editor while others act: it is taken back by what the log says, and by nothing else.
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { SessionHost, EditorIo } from '../../src/acp/session-host.ts'
import type { PermissionChoice, Editor } from '../../src/acp/editor.ts'
import { askPending } from '../../src/acp/questions.ts'
import { callTitle } from '../../src/acp/tool-call.ts'
import { UpdateBuilder } from '../../src/acp/updates.ts'
import { calls, make, moment, tool } from '../runtime/scene.ts'
import { until } from '../until.ts'

const HOUR_MS = 3_600_000

/** A session that waits for an approval, and an editor that shows the question until it is taken back. */
async function asked() {
  const harness = make([calls('pay 7'), 'Paid.'], { tools: [tool('pay', { effect: 'once', approval: 'always' })] })
  const session = await harness.open()
  await session.send('Pay.')
  await session.run()
  const shown = moment()
  const looks: number[] = []
  const choose: Editor['choose'] = async (_id, _call, _options, signal) => {
    shown.come()
    await new Promise((taken) => signal.addEventListener('abort', taken))
    return { type: 'gone' } satisfies PermissionChoice
  }
  const editor = { choose, update: async () => {}, hasForms: false } as unknown as Editor
  const preview: SessionHost['preview'] = async (_place, call) => call.preview
  const desk = { by: 'ana', textOf: async () => null, preview } as unknown as SessionHost
  const pending = async () => {
    looks.push(1)
    return (await session.status()).pending
  }
  const asking = askPending({
    desk,
    editor,
    folder: '/',
    doors: {} as EditorIo,
    updates: new UpdateBuilder(session.id, '/', async () => null),
    session,
    pending,
    sessionOf: async (id) => harness.session(id),
    signal: new AbortController().signal,
    decided: new Set(),
  })
  await shown.here
  return { harness, session, asking, looks }
}

describe('a question that is open in an editor', () => {
  it('B-ACP-22: reads nothing while nothing happens, and is taken back when its call is decided elsewhere', async () => {
    const { session, asking, looks } = await asked()
    onTestFinished(() => void vi.useRealTimers())
    await until(() => expect(looks).toHaveLength(2))
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    await vi.advanceTimersByTimeAsync(HOUR_MS)
    expect(looks).toHaveLength(2)
    vi.useRealTimers()
    const [call] = (await session.status()).pending
    if (!call?.digest) throw new Error('nothing waits')
    await session.decide({ callId: call.callId, digest: call.digest, allow: false, by: 'bob' })
    expect(await asking).toBe('go')
  })

  it('B-ACP-22: is taken back when its session is removed', async () => {
    const { harness, session, asking } = await asked()
    await harness.remove(session.id)
    expect(await asking).toBe('go')
  })

  it('B-ACP-23: what cannot be seen stands in its title by its code, and a title is short', () => {
    expect(callTitle({ tool: 'write', args: { path: 'a\u202e\u200bb' } })).toBe('write a\\u{202e}\\u{200b}b')
    expect(callTitle({ tool: 'bash', args: { command: 'x'.repeat(10_000) } }).length).toBeLessThanOrEqual(120)
  })
})
