// A team: members that claim cards of one board, each in a session of its own.
import { describe, expect, it } from 'vitest'
import {
  BoardHandle,
  boardPlanner,
  memberTool,
  openBoard,
  startTeam,
  teamAgents,
  teamTool,
} from '../../src/boards/index.ts'
import { defineTool, Harness, memory, type Model, type Request, scripted, type Step } from '../../src/index.ts'
import { objectField } from '../../src/tools/core/argument-schema.ts'
import { until } from '../until.ts'

type Said = { readonly tool: string; readonly content: string }

/** What the last call of the board said to this member. */
function lastSaid({ messages }: Request): string {
  const last = messages.findLast((message) => message.role === 'tool') as Said | undefined
  return last?.content ?? ''
}

/** Claims, completes, and claims again until nothing is free. */
function diligent(name: string, done: string[]): (request: Request) => Step {
  const word = (args: object): Step => ({ calls: [{ tool: 'board', args: { member: name, ...args } }] })
  return (request) => {
    // Told to go on, it asks again.
    const said = request.messages.at(-1)?.role === 'user' ? '' : lastSaid(request)
    const [, card, attempt] = /^Started: (t\d+) is yours \(attempt (\d+)\)/.exec(said) ?? []
    if (card !== undefined) {
      done.push(`${card} ${name}`)
      return word({ action: 'complete', card, attempt: Number(attempt) })
    }
    return said.startsWith('NoClaimable') || said.startsWith('Blocked') ? 'Nothing is free.' : word({ action: 'claim' })
  }
}

/** Each session's model plays the member that its first message names. */
function cast(play: Readonly<Record<string, (request: Request) => Step | Promise<Step>>>): Model {
  return scripted((request) => {
    const [, name = ''] = /You are the member \\"(\w+)\\"/.exec(JSON.stringify(request.messages)) ?? []
    return play[name]?.(request) ?? 'I lead.'
  })
}

function team(model: Model) {
  const store = memory()
  const agents = teamAgents(
    { coder: { description: 'Codes.', toolAccess: { allow: [] } } },
    { sessions: () => harness, agentModel: model },
  )
  const harness: Harness = new Harness({ model, store, subagents: agents, graphs: [boardPlanner()] })
  return { store, harness }
}

const MEMBERS = ['ana', 'bob'].map((name) => ({ name, agent: 'coder' }))

describe('a team', () => {
  it('B-TEAM-1: is a board and one child a member; each card is done once, in the order that needs say', async () => {
    const done: string[] = []
    const { harness } = team(cast({ ana: diligent('ana', done), bob: diligent('bob', done) }))
    const lead = await harness.open({ id: 'lead' })
    const tasks = [{ text: 'a' }, { text: 'b' }, { text: 'c', needs: ['t1', 't2'] }, { text: 'd' }]
    const options = { lead: lead.id, members: MEMBERS, tasks }
    const { sessions, advance } = await startTeam(harness, options)
    // One may end while the other holds what the last card needs, and is told to go on.
    for (let i = 0; i < 10 && (await advance()).cards.some(({ status }) => status !== 'done'); i++)
      for (const session of sessions.values()) await harness.session(session).run()
    expect((await advance()).cards.map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(
      Array(4).fill('done 1'),
    )
    expect((await startTeam(harness, options)).sessions).toEqual(sessions)
    expect(new Set(done.map((one) => one.split(' ')[0])).size).toBe(done.length)
    expect([...sessions.values()].every((id) => id.startsWith('lead~'))).toBe(true)
    expect((await lead.status({ include: ['children'] })).children.map(({ agent }) => agent)).toEqual([
      'coder',
      'coder',
    ])
    await harness.close()
  })

  it('B-TEAM-2: a member that is shut down gives its card back, and another takes it', async () => {
    const done: string[] = []
    const claims = { calls: [{ tool: 'board', args: { member: 'ana', action: 'claim', card: 't1' } }] }
    const slow = (request: Request): Step => (lastSaid(request).startsWith('Started') ? { stall: true } : claims)
    const late = (request: Request): Step =>
      request.messages.length < 2 ? { text: 'Later.' } : diligent('bob', done)(request)
    const { harness } = team(cast({ ana: slow, bob: late }))
    const lead = await harness.open({ id: 'lead' })
    const { board, shutdown } = await startTeam(harness, {
      lead: lead.id,
      members: MEMBERS,
      tasks: [{ text: 'a' }],
    })
    for (let i = 0; i < 200 && (await board.read()).cards[0]?.by !== 'ana'; i++)
      await new Promise((go) => setTimeout(go, 10))
    await shutdown('ana')
    await until(async () =>
      expect((await board.read()).cards[0]).toMatchObject({ status: 'done', by: 'bob', attempts: 2 }),
    )
    await expect(shutdown('zed')).rejects.toMatchObject({ detail: 'UnknownMember' })
    await harness.close()
  })

  it('B-TEAM-3: a session speaks for one member only', async () => {
    const store = memory()
    const calls = ['ana', 'bob'].map((member) => ({ tool: 'board', args: { member, action: 'claim' } }))
    const model = scripted([{ calls }, 'Done.'])
    const tools = [memberTool({ sessions: () => harness, board: () => 'b' })]
    const harness: Harness = new Harness({ model, store, tools, graphs: [boardPlanner()] })
    const members = ['ana', 'bob'].map((name) => ({ name, role: 'worker' }) as const)
    await openBoard(harness, { id: 'b', members, cards: [{ text: 'a' }, { text: 'b' }] })
    const { calls: said, sessionId } = await harness.run('Take two.')
    expect(said.map(({ content }) => JSON.stringify(content).slice(1).split(':')[0])).toEqual([
      'Started',
      'AlreadyActive',
    ])
    const { members: seated } = await new BoardHandle(harness, 'b').read()
    expect(seated).toEqual([
      { name: 'ana', role: 'worker', session: sessionId },
      { name: 'bob', role: 'worker' },
    ])
    await harness.close()
  })

  it('B-FAMILY-3: a member of a team is known by its session: the name of another in a call takes nothing', async () => {
    const store = memory()
    const word = (member: string, args: object): Step => ({ calls: [{ tool: 'board', args: { member, ...args } }] })
    // bob says that he is ana, before ana says anything.
    let said = (): void => {}
    const spoke = new Promise<void>((resolve) => {
      said = resolve
    })
    const model = scripted(async (request) => {
      const [, name = ''] = /You are the member \\"(\w+)\\"/.exec(JSON.stringify(request.messages)) ?? []
      const turns = request.messages.filter(({ role }) => role === 'assistant').length
      if (name === 'bob') return turns === 0 ? word('ana', { action: 'claim', card: 't1' }) : (said(), 'Done.')
      await spoke
      return turns === 0 ? word('bob', { action: 'claim', card: 't2' }) : 'Done.'
    })
    const harness: Harness = new Harness({
      model,
      store,
      subagents: teamAgents({ worker: { description: 'works' } }, { sessions: () => harness }),
      graphs: [boardPlanner()],
    })
    const { id: lead } = await harness.open()
    const members = ['ana', 'bob'].map((name) => ({ name, agent: 'worker' }))
    const team = await startTeam(harness, { lead, members, tasks: [{ text: 'a' }, { text: 'b' }] })
    await until(async () => {
      const { members: seated } = await team.board.read()
      expect(seated.map(({ name, session }) => [name, session])).toEqual([...team.sessions])
    })
    await harness.close()
  })

  it('B-FAMILY-3: a place that a session has is not taken by another session that gives its name', async () => {
    const store = memory()
    const list = { calls: [{ tool: 'board', args: { member: 'ana', action: 'list' } }] }
    const tools = [memberTool({ sessions: () => harness, board: () => 'b' })]
    const model = scripted(({ messages }) => (messages.some(({ role }) => role === 'tool') ? 'Done.' : list))
    const harness: Harness = new Harness({ model, store, tools, graphs: [boardPlanner()] })
    await openBoard(harness, { id: 'b', members: [{ name: 'ana', role: 'worker' }], cards: [{ text: 'a' }] })
    const first = await harness.run('Look.')
    const second = await harness.run('Look.')
    expect(JSON.stringify(second.calls[0]?.content)).toContain('Another session has the place')
    const { members } = await new BoardHandle(harness, 'b').read()
    expect(members).toEqual([{ name: 'ana', role: 'worker', session: first.sessionId }])
    await harness.close()
  })

  it('B-LEAD-2: goes on by itself: what a member unblocks or leaves is claimed by one that rests, and nobody calls advance', async () => {
    const done: string[] = []
    const hold = gate()
    // ana holds the card that the others need until bob has ended his run.
    const slow = async (request: Request): Promise<Step> => {
      if (lastSaid(request).startsWith('Started: t1')) await hold.open
      // She completes it, and ends her run: what is free now is for bob.
      return lastSaid(request).includes('[x] t1') ? 'I am done.' : diligent('ana', done)(request)
    }
    const { harness } = team(cast({ ana: slow, bob: diligent('bob', done) }))
    const lead = await harness.open({ id: 'lead' })
    const tasks = [{ text: 'a' }, { text: 'b', needs: ['t1'] }, { text: 'c', needs: ['t2'] }]
    const { board, sessions } = await startTeam(harness, { lead: lead.id, members: MEMBERS, tasks })
    await until(async () =>
      expect(
        (await harness.session(sessions.get('bob') ?? '', { stored: true }).status({ include: ['card'] })).card,
      ).toMatchObject({ phase: 'resting', status: 'idle' }),
    )
    hold.go()
    await until(async () =>
      expect((await board.read()).cards.map(({ status }) => status)).toEqual(Array(3).fill('done')),
    )
    expect(new Set(done.map((one) => one.split(' ')[0])).size).toBe(3)
    await harness.close()
  })

  it('B-LEAD-2: a member that claims nothing of what is free is told three times and no more; one that was stopped is not told', async () => {
    const asked: string[] = []
    const lazy = (request: Request): Step => {
      asked.push(JSON.stringify(request.messages.at(-1)))
      return 'I would rather not.'
    }
    const { harness } = team(cast({ ana: lazy }))
    const lead = await harness.open({ id: 'lead' })
    const members = MEMBERS.slice(0, 1)
    const { board } = await startTeam(harness, { lead: lead.id, members, tasks: [{ text: 'a' }] })
    await until(async () => expect((await board.read()).members[0]).toMatchObject({ rests: 'ended', told: 3 }))
    await board.look()
    expect(asked).toHaveLength(4)
    expect(asked.at(-1)).toContain('is free. Claim it')
    // A person who stops it wants it to stop.
    const stalled = team(cast({ ana: () => ({ stall: true }) }))
    const other = await stalled.harness.open({ id: 'lead' })
    const started = await startTeam(stalled.harness, { lead: other.id, members, tasks: [{ text: 'a' }] })
    await stalled.harness.session(started.sessions.get('ana') ?? '').interrupt()
    await until(async () => expect((await started.board.read()).members[0]).toMatchObject({ rests: 'stopped' }))
    expect((await started.board.look()).members[0]).not.toHaveProperty('told')
    await Promise.all([harness.close(), stalled.harness.close()])
  })

  it('B-LEAD-3: a model makes a team and leads it with the tool "team": cards, members, more cards, and an end', async () => {
    const done: string[] = []
    const word = (args: object): Step => ({ calls: [{ tool: 'team', args: { ...args } }] })
    const script: Step[] = [
      word({ action: 'look' }),
      word({ action: 'start', members: MEMBERS, tasks: [{ text: 'a' }, { text: 'b', needs: ['t1'] }] }),
      word({ action: 'start', members: MEMBERS.slice(1), tasks: [{ text: 'z' }] }),
      word({ action: 'add', tasks: [{ text: 'c', needs: ['t2'] }] }),
      'They work.',
    ]
    const model = scripted((request) => {
      if (JSON.stringify(request.messages).includes('You are the member')) return memberStep(request)
      return script[request.messages.filter(({ role }) => role === 'assistant').length] ?? 'I heard.'
    })
    const plays = { ana: diligent('ana', done), bob: diligent('bob', done) }
    const memberStep = (request: Request): Step => {
      const [, name = ''] = /You are the member \\"(\w+)\\"/.exec(JSON.stringify(request.messages)) ?? []
      return name === 'ana' || name === 'bob' ? plays[name](request) : 'Who?'
    }
    const store = memory()
    const tools = [teamTool({ sessions: () => harness })]
    const subagents = teamAgents(
      { coder: { description: 'Codes.', toolAccess: { allow: [] } } },
      { sessions: () => harness },
    )
    const harness: Harness = new Harness({ model, store, tools, subagents, graphs: [boardPlanner()] })
    const lead = await harness.open({ id: 'lead' })
    const { calls } = await lead.run('Build it with a team.')
    expect(calls.map(({ status }) => status)).toEqual(['error', 'ok', 'error', 'ok'])
    expect(JSON.stringify(calls.map(({ content }) => content))).toMatch(/You lead no team yet.*You lead a team already/)
    const board = new BoardHandle(harness, 'lead-board')
    await until(async () =>
      expect((await board.read()).cards.map(({ status }) => status)).toEqual(Array(3).fill('done')),
    )
    expect((await lead.status({ include: ['children'] })).children.map(({ agent }) => agent)).toEqual([
      'coder',
      'coder',
    ])
    await harness.close()
  })

  it('B-LEAD-3: members that a narrowed run starts have no tool that it leaves out, and a subagent leads no team', async () => {
    const seen: string[][] = []
    const word = (args: object): Step => ({ calls: [{ tool: 'team', args: { ...args } }] })
    const start = word({ action: 'start', members: MEMBERS.slice(0, 1), tasks: [{ text: 'a' }] })
    const model = scripted((request) => {
      const text = JSON.stringify(request.messages)
      if (text.includes('You are the member')) {
        seen.push(request.tools.map(({ name }) => name))
        return 'Nothing.'
      }
      return request.messages.some(({ role }) => role === 'assistant') ? 'Done.' : start
    })
    const store = memory()
    const publish = defineTool({
      name: 'publish',
      description: 'Publishes.',
      input: objectField({}),
      execute: () => 'ok',
    })
    const tools = [teamTool({ sessions: () => harness }), publish]
    const subagents = teamAgents({ coder: { description: 'Codes.', tools: [publish] } }, { sessions: () => harness })
    const harness: Harness = new Harness({ model, store, tools, subagents, graphs: [boardPlanner()] })
    const lead = await harness.open({ id: 'lead' })
    await lead.run('Go.', { tools: ['team', 'board'] })
    await until(() => expect(seen.length).toBeGreaterThan(0))
    expect(seen.flat()).toContain('board')
    expect(seen.flat()).not.toContain('publish')
    await harness.close()
  })
})

function gate(): { readonly open: Promise<void>; readonly go: () => void } {
  let go = (): void => {}
  const open = new Promise<void>((resolve) => {
    go = resolve
  })
  return { open, go: () => go() }
}
