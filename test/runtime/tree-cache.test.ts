// One cache key for a tree of sessions, on the bytes that were sent to a server.
import { describe, expect, it } from 'vitest'
import type { ChaosReply } from '../../src/testing/index.ts'
import { chaosOf, harnessOf, hosted, noting, storeOf } from '../models/hosted-stage.ts'

/** A fetch that keeps the bodies as they were sent. */
function recorder() {
  const bodies: string[] = []
  const send: typeof fetch = (url, init) => {
    bodies.push(typeof init?.body === 'string' ? init.body : '')
    return fetch(url, init)
  }
  return { bodies, send }
}

const START: ChaosReply = { calls: [{ tool: 'subagent', args: { task: 'Look at the roof.' } }] }

function keyOf(body: string | undefined): unknown {
  return (JSON.parse(body ?? '{}') as { readonly prompt_cache_key?: unknown }).prompt_cache_key
}

describe('the cache key of a tree', () => {
  it('B-TREE-1: a child of the same agent, and its child, send the key of the root, and the first bytes of the parent', async () => {
    const { bodies, send } = recorder()
    const chaos = await chaosOf((_request, n) => (n < 2 ? START : { text: 'Done.' }))
    const harness = harnessOf({
      model: hosted(chaos, 'responses', { fetch: send }),
      store: storeOf('sqlite'),
      tools: [noting().tool],
      instructions: 'Be short.',
      subagents: true,
    })
    const session = await harness.open()
    await session.run('Begin.')
    expect(bodies.length).toBeGreaterThanOrEqual(5)
    expect(new Set(bodies.map(keyOf))).toEqual(new Set([session.id]))
    // Everything before the conversation: model, instructions and tools.
    const [above = '', below = ''] = bodies.map((body) => body.slice(0, body.indexOf('"input":')))
    expect(below).toBe(above)
    expect(above).toContain('"tools":[')
  })

  it('B-TREE-2: a fork sends the key of the session it came from, also from another process, and a session without either its own', async () => {
    const { bodies, send } = recorder()
    const chaos = await chaosOf(() => ({ text: 'Done.' }))
    const store = storeOf('sqlite')
    const make = () => harnessOf({ model: hosted(chaos, 'responses', { fetch: send }), store })
    const harness = make()
    const session = await harness.open()
    await session.run('one')
    const fork = await session.fork()
    await fork.run('two')
    const deeper = await fork.fork()
    await harness.close()
    const other = make()
    await other.session(deeper.id).run('three')
    const apart = await other.open()
    await apart.run('four')
    expect(bodies.map(keyOf)).toEqual([session.id, session.id, session.id, apart.id])
    const [first = '', second = ''] = bodies
    expect(second.startsWith(first.replace(/\]\}$/, ''))).toBe(true)
  })
})
