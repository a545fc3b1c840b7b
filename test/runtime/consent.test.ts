// Approvals and denials through the harness: what each covers within its run, and which voters count as the same person.
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type HarnessOptions,
  memory,
  type Policy,
  type Script,
  scripted,
} from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'

const open: Harness[] = []
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
})

function make(
  script: Script,
  tools: NonNullable<HarnessOptions['tools']>,
  more: Partial<HarnessOptions> = {},
): Harness {
  const harness = new Harness({ model: scripted(script), tools, ...more })
  open.push(harness)
  return harness
}

describe('a yes and a no of this run', () => {
  const files = (ran: string[]) =>
    defineTool({
      name: 'put',
      description: 'puts',
      input: z.object({ path: z.string(), text: z.string().optional(), flag: z.boolean().optional() }),
      approval: 'ask',
      execute: ({ path }) => {
        ran.push(path)
        return 'done'
      },
    })
  const put = (args: Json) => ({ calls: [{ tool: 'put', args }] })
  const PUTS = { effect: 'allow', tool: 'put' } as const

  it('B-CLI-170: a yes for the run is recorded with its rule, covers what follows, and ends with the first no', async () => {
    const ran: string[] = []
    const script = [put({ path: 'a' }), put({ path: 'b' }), put({ path: 'c' }), put({ path: 'd' }), 'done']
    const harness = make(script, [files(ran)])
    const session = await harness.open()
    const [a] = (await session.run('go')).pending
    expect(a).not.toHaveProperty('covered')
    await session.decide({ callId: a?.callId ?? '', allow: true, by: 'ana', remember: PUTS, scope: 'run' })
    const [b] = (await session.run()).pending
    expect(b?.covered).toEqual({ call: a?.callId, by: 'ana' })
    const under = a?.callId ?? ''
    await session.decide({ callId: b?.callId ?? '', allow: true, by: 'terret', under })
    const [c] = (await session.run()).pending
    await session.decide({ callId: c?.callId ?? '', allow: false, by: 'ana' })
    const [d] = (await session.run()).pending
    expect(d).not.toHaveProperty('covered')
    const stale = session.decide({ callId: d?.callId ?? '', allow: true, by: 'terret', under })
    await expect(stale).rejects.toMatchObject({ code: 'decision_stale' })
    // A late decision did not replace the first one.
    await session.decide({ callId: d?.callId ?? '', allow: true, by: 'ana' })
    expect((await session.run()).status).toBe('completed')
    expect(ran).toEqual(['a', 'b', 'd'])
  })

  it.each([
    ['as it was', { path: 'a/b', text: 'x y' }],
    ['with its keys in another order', { text: 'x y', path: 'a/b' }],
    ['with other blanks', { path: ' a/b', text: 'x  y\n' }],
    ['with ./ before the path', { path: './a/b', text: 'x y' }],
    ['with a detour in the path', { path: 'a/../a//b', text: 'x y' }],
    ['with its whole path', { path: '/home/a/b', text: 'x y' }],
    ['with a field that says nothing', { path: 'a/b', text: 'x y', flag: false }],
  ])('B-CLI-171: a call that was denied is asked again, %s, whatever a rule or a yes allows', async (_how, args) => {
    const ran: string[] = []
    const store = memory()
    const policy = (rules: Policy['rules']): Policy => ({ rules, base: '/home' })
    const tools = [files(ran)]
    const first = make([put({ path: 'a/b', text: 'x y' })], tools, { store, approvals: { policy: policy([]) } })
    const { pending, sessionId } = await first.run('go')
    await first.close()
    // From here on a rule allows everything.
    const later = make([put(args), put({ path: 'other' }), 'done'], tools, {
      store,
      approvals: { policy: policy([{ effect: 'allow' }]) },
    })
    const session = later.session(sessionId)
    await session.decide({ callId: pending[0]?.callId ?? '', allow: false, by: 'ana' })
    const [again] = (await session.run()).pending
    expect(again).toMatchObject({ tool: 'put', denied: true })
    expect(ran).toEqual([])
    await session.decide({ callId: again?.callId ?? '', allow: true, by: 'ana' })
    expect((await session.run()).status).toBe('completed')
    expect(ran).toEqual([(args as { path: string }).path, 'other'])
  })

  it('B-CLI-171: where no person can be asked, a call that was denied before is denied', async () => {
    const ran: string[] = []
    const store = memory()
    const first = make([put({ path: 'a' })], [files(ran)], { store })
    const { pending, sessionId } = await first.run('go')
    await first.close()
    const policy: Policy = { rules: [{ effect: 'allow' }], onAsk: 'deny' }
    const session = make([put({ path: './a' }), 'done'], [files(ran)], { store, approvals: { policy } }).session(
      sessionId,
    )
    await session.decide({ callId: pending[0]?.callId ?? '', allow: false, by: 'ana' })
    expect(await session.run()).toMatchObject({ status: 'completed', calls: [{}, { status: 'denied' }] })
    expect(ran).toEqual([])
  })

  it('B-CLI-170: a yes for the run needs a rule that allows, and is refused in one sentence without it', async () => {
    const session = await make([put({ path: 'a' })], [files([])]).open()
    const [a] = (await session.run('go')).pending
    const base = { callId: a?.callId ?? '', by: 'ana' }
    for (const wrong of [
      { allow: true, scope: 'run' },
      { allow: false, scope: 'run', remember: PUTS },
      { allow: true, scope: 'run', remember: { effect: 'deny' } },
      { allow: true, scope: 'session', remember: PUTS },
      { allow: true, scope: 'run', remember: { ...PUTS, tool: 'x'.repeat(5_000) } },
    ]) {
      const said = session.decide({ ...base, ...wrong } as never)
      await expect(said).rejects.toMatchObject({ code: 'invalid_input' })
    }
  })

  it.each(['ann ', 'Ann', 'аnn', 'ａnn', 'a nn'])(
    'B-CLI-173: %j is the person "ann", and no second vote',
    async (name) => {
      const ran: string[] = []
      const policy: Policy = { rules: [{ effect: 'ask', n: 2 }] }
      const session = await make([put({ path: 'a' }), 'done'], [files(ran)], { approvals: { policy } }).open()
      const [a] = (await session.run('go')).pending
      const callId = a?.callId ?? ''
      await session.decide({ callId, allow: true, by: 'ann' })
      await session.decide({ callId, allow: true, by: name }).catch((error: unknown) => {
        expect(error).toMatchObject({ code: 'decision_stale' })
      })
      expect((await session.run()).pending).toMatchObject([{ votes: ['ann'] }])
      await session.decide({ callId, allow: true, by: 'bob' })
      expect((await session.run()).status).toBe('completed')
    },
  )

  it('B-CLI-173: two voters whose names look alike and who vote at the same moment count as one', async () => {
    const policy: Policy = { rules: [{ effect: 'ask', n: 2 }] }
    const session = await make([put({ path: 'a' }), 'done'], [files([])], { approvals: { policy } }).open()
    const [a] = (await session.run('go')).pending
    const votes = ['ann', 'аnn'].map((by) => session.decide({ callId: a?.callId ?? '', allow: true, by }))
    expect((await Promise.allSettled(votes)).map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect((await session.run()).pending).toHaveLength(1)
  })
})
