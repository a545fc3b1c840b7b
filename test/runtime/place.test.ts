// An approval is for one place: the folder, the sandbox, the values that the host supplies, the environment. A call that would act
// in another place is asked about again.
import { mkdtempSync, readFileSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Script,
  scripted,
  type CompleteStore,
} from '../../src/index.ts'
import { redecide } from '../../src/archive/replay-decide.ts'
import { readLog } from '../../src/view/session-log.ts'
import { bashTool } from '../../src/tools/shell/bash.ts'
import { fileTools } from '../../src/tools/files/file-tools.ts'
import type { Tool } from '../../src/tools/core/tool.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function harnessOf(store: CompleteStore, script: Script, options: Partial<HarnessOptions>): Harness {
  const harness = new Harness({ model: scripted(script), secrets: {}, store, ...options })
  open.push(harness)
  return harness
}

function folder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'terret-place-')))
}

type Case = { readonly call: { tool: string; args: Record<string, string | number> }; readonly asks?: true }

/** Asked and allowed in one place, and driven in another. */
async function moved({ call }: Case, here: Partial<HarnessOptions>, there: Partial<HarnessOptions>) {
  const store = memory()
  const first = harnessOf(store, [{ calls: [call] }], here)
  const session = await first.open({ id: 's' })
  const [pending] = (await session.run('Go.')).pending
  await first.close()
  const decision = { allow: true, by: 'ann', digest: pending?.digest ?? '' }
  const aside = harnessOf(store, [], { worker: { drives: false } })
  await aside.session('s').decide({ callId: pending?.callId ?? '', ...decision })
  const second = harnessOf(store, ['Done.'], there)
  return { store, session: second.session('s'), pending }
}

const write: Case = { call: { tool: 'write', args: { path: 'a.txt', content: 'hello' } } }
const asks = { approvals: { policy: { rules: [{ effect: 'ask', tool: 'write' }] } } } as const

function mail(options: { tenant?: string; place?: string }, sent: string[]): Tool {
  const { tenant, place } = options
  return defineTool({
    name: 'mail',
    description: 'sends a mail',
    input: z.object({ to: z.string(), tenant: z.string().optional() }),
    approval: 'ask',
    ...(tenant === undefined ? {} : { injected: { tenant: () => tenant } }),
    ...(place === undefined ? {} : { place: () => place }),
    execute: (args) => {
      sent.push(`${args.to} as ${args.tenant}`)
      return 'sent'
    },
  })
}

describe('an approval', () => {
  it('B-APPROVE-14: is void in another folder: the call is asked about again there, and only that yes lets it run', async () => {
    const [a, b] = [folder(), folder()]
    const { session, store, pending } = await moved(
      write,
      { ...asks, tools: fileTools({ root: a }) },
      { ...asks, tools: fileTools({ root: b }) },
    )
    const again = await session.run()
    expect(again).toMatchObject({ status: 'requires_action', pending: [{ callId: pending?.callId, votes: [] }] })
    expect(again.pending[0]?.digest).not.toBe(pending?.digest)
    expect(again.calls[0]?.approved).toBeUndefined()
    const [asked] = again.pending
    const stale = { callId: asked?.callId ?? '', allow: true, by: 'ann', digest: pending?.digest ?? '' }
    await expect(session.decide(stale)).rejects.toMatchObject({ code: 'decision_stale' })
    await session.decide({ ...stale, digest: asked?.digest ?? '' })
    expect((await session.run()).status).toBe('completed')
    expect(readFileSync(join(b, 'a.txt'), 'utf8')).toBe('hello')
    expect(redecide(await readLog(store, 's'))).toEqual([])
  })

  it('B-APPROVE-14: holds in the same place, in another process of it', async () => {
    const root = folder()
    const { session } = await moved(
      write,
      { ...asks, tools: fileTools({ root }) },
      { ...asks, tools: fileTools({ root }) },
    )
    expect((await session.run()).status).toBe('completed')
  })

  it('B-APPROVE-14: of a command is void in another workspace, under another sandbox and with other variables', async () => {
    const [a, b] = [folder(), folder()]
    const call = { tool: 'bash', args: { command: 'echo hi > out.txt' } }
    const none = { type: 'none', reason: 'a test' } as const
    const at = (workspace: string, env: Record<string, string> = { PATH: '/usr/bin:/bin' }, masked: string[] = []) => {
      return { tools: [bashTool({ workspace, sandbox: none, attended: true, env, masked })] }
    }
    for (const there of [at(b), at(a, { PATH: '/opt/evil:/usr/bin:/bin' }), at(a, undefined, ['/srv'])]) {
      const { session } = await moved({ call }, at(a), there)
      expect(await session.run()).toMatchObject({ status: 'requires_action', pending: [{ tool: 'bash' }] })
    }
    const { session } = await moved({ call }, at(a), at(a))
    expect((await session.run()).status).toBe('completed')
    expect(readFileSync(join(a, 'out.txt'), 'utf8')).toBe('hi\n')
  })

  it('B-APPROVE-14: is void with other injected values, in another environment, and where the tool says it acts elsewhere', async () => {
    const call = { tool: 'mail', args: { to: 'bob' } }
    const sent: string[] = []
    const pairs: readonly (readonly [Partial<HarnessOptions>, Partial<HarnessOptions>])[] = [
      [{ tools: [mail({ tenant: 'one' }, sent)] }, { tools: [mail({ tenant: 'two' }, sent)] }],
      [
        { tools: [mail({}, sent)], approvals: { environment: 'staging' } },
        { tools: [mail({}, sent)], approvals: { environment: 'production' } },
      ],
      [{ tools: [mail({}, sent)] }, { tools: [mail({}, sent)], approvals: { environment: 'production' } }],
      [{ tools: [mail({ place: 'a' }, sent)] }, { tools: [mail({ place: 'b' }, sent)] }],
    ]
    for (const [here, there] of pairs) {
      const { session } = await moved({ call }, here, there)
      expect(await session.run()).toMatchObject({ status: 'requires_action', pending: [{ tool: 'mail' }] })
    }
    expect(sent).toEqual([])
    const same = { tools: [mail({ tenant: 'one' }, sent)], approvals: { environment: 'staging' } }
    const { session } = await moved({ call }, same, same)
    expect((await session.run()).status).toBe('completed')
    // The place that the tool itself declares counts instead of the injected values.
    const said = await moved(
      { call },
      { tools: [mail({ tenant: '1', place: 'a' }, sent)] },
      { tools: [mail({ tenant: '2', place: 'a' }, sent)] },
    )
    expect((await said.session.run()).status).toBe('completed')
    expect(sent).toEqual(['bob as one', 'bob as 2'])
  })

  it('B-APPROVE-15: cannot be kept from being given by a message with any id, and a message cannot have an id of the harness', async () => {
    const sent: string[] = []
    const harness = harnessOf(memory(), [{ calls: [{ tool: 'mail', args: { to: 'bob' } }] }, 'Done.'], {
      tools: [mail({}, sent)],
    })
    const session = await harness.open({ id: 's' })
    const [pending] = (await session.run('Go.')).pending
    const callId = pending?.callId ?? ''
    for (const id of [`decision:${callId}`, `answer:${callId}`, 'task', `parent:${callId}`, `late:${callId}`])
      expect(await session.send('x', { id, when: 'after' })).toMatchObject({ duplicate: false })
    const own = session.send('x', { id: `terret:decision:${callId}` })
    await expect(own).rejects.toMatchObject({ code: 'invalid_input' })
    await session.decide({ callId, allow: true, by: 'ann' })
    await session.run()
    expect(sent).toHaveLength(1)
  })

  it('B-APPROVE-15: an older log whose decisions have ids without the mark of the harness goes on as it was', async () => {
    const store = memory()
    const sent: string[] = []
    const harness = harnessOf(store, [{ calls: [{ tool: 'mail', args: { to: 'bob' } }] }, 'Done.'], {
      tools: [mail({}, sent)],
    })
    const session = await harness.open({ id: 's' })
    const [pending] = (await session.run('Go.')).pending
    const { callId = '', digest = '' } = pending ?? {}
    const event = {
      type: 'user.tool_confirmation',
      id: `decision:${callId}`,
      call: callId,
      digest,
      allow: true,
      by: 'a',
    } as const
    await store.commit([{ session: 's', lane: 'inbox', events: [event] }])
    expect((await session.run()).status).toBe('completed')
    await expect(session.decide({ callId, allow: false, by: 'b' })).rejects.toMatchObject({ code: 'decision_stale' })
    expect(sent).toHaveLength(1)
  })

  it('B-APPROVE-16: no session can be opened or forked under a name that a child would have', async () => {
    const store = memory()
    const script: Script = (request) =>
      request.session.includes('~') || request.messages.some(({ role }) => role === 'tool')
        ? 'Done.'
        : { calls: [{ tool: 'subagent', args: { task: 'Help.' } }] }
    const harness = harnessOf(store, script, { subagents: true })
    const session = await harness.open({ id: 'p' })
    await expect(harness.open({ id: 'p~5.0' })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(session.fork({ id: 'p~5.0' })).rejects.toMatchObject({ code: 'invalid_input' })
    expect((await harness.open({ id: 'p~notes' })).id).toBe('p~notes')
    expect((await session.run('Go.')).status).toBe('completed')
  })
})
