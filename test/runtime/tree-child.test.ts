// Children that go on from their parent's conversation, and children that work in a worktree.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ChaosReply } from '../../src/testing/index.ts'
import { fileTools } from '../../src/tools/index.ts'
import { chaosOf, eventsOf, harnessOf, hosted, noting, ofType, storeOf } from '../models/hosted-stage.ts'
import { family, use } from './children-stage.ts'
import { until } from '../until.ts'

const FORK: ChaosReply = {
  calls: [{ tool: 'spawn_subagent', args: { agent_id: 'fork', prompt: 'Look at the roof.' } }],
}

function recorder() {
  const bodies: string[] = []
  const send: typeof fetch = (url, init) => {
    bodies.push(typeof init?.body === 'string' ? init.body : '')
    return fetch(url, init)
  }
  return { bodies, send }
}

function repository(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-child-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: folder, stdio: 'ignore' })
  git('init', '-q')
  writeFileSync(join(folder, 'a.txt'), 'a\n')
  git('add', '.')
  git('commit', '-qm', 'first')
  return folder
}

describe('a fork child', () => {
  it('B-TREE-30: begins with the bytes of its parent, then its task, under the same key, and sees no open call', async () => {
    const { bodies, send } = recorder()
    const chaos = await chaosOf((_request, n) => (n === 1 ? FORK : { text: 'Done.' }))
    const store = storeOf('sqlite')
    const harness = harnessOf({
      model: hosted(chaos, 'responses', { fetch: send }),
      store,
      tools: [noting().tool],
      instructions: 'Be short.',
      subagents: true,
      detached: true,
    })
    const session = await harness.open({ environment: 'staging' })
    await session.run('one')
    await session.run('two')
    await until(async () =>
      expect((await session.status({ include: ['children'] })).children).toMatchObject([{ status: 'idle' }]),
    )
    const asked = bodies[1] ?? ''
    const forked = bodies.find((body) => body.includes('"text":"Look at the roof."')) ?? ''
    expect(forked.startsWith(asked.replace(/\]\}$/, ''))).toBe(true)
    expect(forked).not.toContain('function_call')
    expect(JSON.parse(forked)).toMatchObject({ prompt_cache_key: session.id })
    const [row] = (await session.status({ include: ['children'] })).children
    const [created] = await eventsOf(store, row?.sessionId ?? '')
    expect(created).toMatchObject({ fork: { session: session.id }, parent: { session: session.id, detached: true } })
  })

  it('B-LEAD-1: with blocking: true it begins with the bytes of its parent too, and its answer is the result of the call', async () => {
    const { bodies, send } = recorder()
    const args = { agent_id: 'fork', prompt: 'Look at the roof.', blocking: true }
    const chaos = await chaosOf((_request, n) =>
      n === 1 ? { calls: [{ tool: 'spawn_subagent', args }] } : { text: n === 2 ? 'It leaks.' : 'Done.' },
    )
    const store = storeOf('sqlite')
    const harness = harnessOf({
      model: hosted(chaos, 'responses', { fetch: send }),
      store,
      subagents: true,
      detached: true,
    })
    const session = await harness.open()
    await session.run('one')
    const result = await session.run('two')
    const asked = bodies[1] ?? ''
    const forked = bodies[2] ?? ''
    expect(forked).toContain('"text":"Look at the roof."')
    expect(forked.startsWith(asked.replace(/\]\}$/, ''))).toBe(true)
    expect(forked).not.toContain('function_call')
    expect(result.calls).toMatchObject([{ tool: 'spawn_subagent', status: 'ok', content: 'It leaks.' }])
    const [row] = (await session.status({ include: ['children'] })).children
    const [created] = await eventsOf(store, row?.sessionId ?? '')
    expect(created).toMatchObject({ fork: { session: session.id }, parent: { session: session.id } })
  })

  it('B-TREE-31: spawned by the host it knows what was said to its parent', async () => {
    const texts: string[] = []
    const { harness, store } = family(
      {
        name: 'echo',
        call: async (request) => {
          const told = request.messages.flatMap((m) =>
            m.role === 'user' ? m.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) : [],
          )
          texts.push(told.join(' | '))
          return { type: 'reply', parts: [{ type: 'text', text: 'ok' }], calls: [], finish: 'stop', usage: null }
        },
      },
      { detached: true },
    )
    const session = await harness.open()
    await session.run('one')
    const { sessionId } = await session.spawn('default', 'two', { fork: true })
    await until(async () => expect(ofType(await eventsOf(store, sessionId), 'run.settled')).toHaveLength(1))
    expect(texts).toContain('one | two')
  })
})

describe('a child in a worktree', () => {
  it('B-TREE-32: its file tools work there and nowhere else, also in another process', async () => {
    const folder = repository()
    const store = storeOf('sqlite')
    const roles = {
      dig: [
        use('write', { path: 'a.txt', content: 'by the child\n' }),
        'Done.',
        use('write', { path: 'b.txt', content: 'b\n' }),
        use('write', { path: join(folder, 'a.txt'), content: 'out' }),
        'Done.',
      ],
    }
    const make = () => family(roles, { store, detached: true, tools: fileTools({ root: folder }) }).harness
    const first = make()
    const session = await first.open({ folder })
    const { sessionId } = await session.spawn('subagent', 'dig', { isolation: 'worktree' })
    const runs = (n: number) =>
      until(async () => expect(ofType(await eventsOf(store, sessionId), 'run.settled')).toHaveLength(n))
    await runs(1)
    const [created] = await eventsOf(store, sessionId)
    const place = created?.type === 'session.created' ? (created.folder ?? '') : ''
    expect(place.startsWith(join(folder, '.terret', 'worktrees'))).toBe(true)
    expect(readFileSync(join(place, 'a.txt'), 'utf8')).toBe('by the child\n')
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('a\n')
    await first.close()
    const second = make()
    await second.session(sessionId).run('more')
    expect(readFileSync(join(place, 'b.txt'), 'utf8')).toBe('b\n')
    expect(existsSync(join(folder, 'b.txt'))).toBe(false)
    expect(readFileSync(join(folder, 'a.txt'), 'utf8')).toBe('a\n')
  })
})
