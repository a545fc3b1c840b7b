// The client against a real server: its verbs, faults as the library has them, connections that are lost and answers that never come.
import { createServer, connect as open, type Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect, ServerRefusal } from '../../src/client/index.ts'
import { Fault } from '../../src/index.ts'
import { tool } from '../runtime/scene.ts'
import { outsideBrowser } from '../tidy/imports.ts'
import { readSources } from '../tidy/source.ts'
import { until } from '../until.ts'
import { type Served, served } from './served.ts'

const publish = tool('publish', { approval: 'ask', effect: 'once' })

const clientOf = (one: Served, more = {}): Client => connect({ url: one.server.url, token: one.tokens.own, ...more })

/** Between the client and the server: it passes bytes on, and cuts every connection that is told to it. */
async function between() {
  let port = 0
  const sockets = new Set<Socket>()
  const gate = createServer((socket) => {
    const far = open(port, '127.0.0.1')
    for (const each of [socket, far]) {
      sockets.add(each)
      each
        .on('error', () => {})
        .on('close', () => {
          sockets.delete(each)
          socket.destroy()
          far.destroy()
        })
    }
    socket.pipe(far)
    far.pipe(socket)
  })
  await new Promise<void>((resolve) => void gate.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void gate.close())
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  const to = (server: number): void => {
    port = server
  }
  return { port: (gate.address() as AddressInfo).port, to, cut, sockets }
}

describe('the client', () => {
  it('B-VERBS-8: reaches nothing of Node and no package, also through what it imports', () => {
    expect(outsideBrowser(readSources(['src']), 'src/client/index.ts')).toEqual([])
  })

  it('B-SERVE-29: has the verbs of the library, and its faults', async () => {
    const one = await served([{ calls: [{ tool: 'publish', args: { n: 1 } }] }, 'Done.', 'Again.'], {
      harness: { tools: [publish] },
    })
    const client = clientOf(one)
    const session = await client.open()
    await session.send('Go.')
    expect(await session.run()).toMatchObject({ status: 'requires_action' })
    const [call] = await client.pending()
    expect(call).toMatchObject({ tool: 'publish', sessionId: session.id })
    await session.decide({ callId: call?.callId ?? '', digest: call?.digest ?? '', allow: true, why: 'fine' })
    expect(await session.result({ waitMs: 20_000 })).toMatchObject({ status: 'completed', text: 'Done.' })
    expect(await session.run('More.')).toMatchObject({ text: 'Again.' })
    expect((await session.events()).events).toEqual((await one.host.store.read(session.id, 0)).events)
    expect((await session.messages()).length).toBeGreaterThan(3)
    const fork = await session.fork({ at: 2 })
    expect((await fork.status()).sessionId).toBe(fork.id)
    expect((await client.list({ q: 'Go' })).cards.map((card) => card.session)).toContain(session.id)
    expect(await client.server.me()).toMatchObject({ name: 'owner' })
    expect((await client.server.export(session.id)).split('\n').length).toBeGreaterThan(5)
    await expect(session.decide({ callId: call?.callId ?? '', digest: 'x', allow: true })).rejects.toMatchObject({
      name: 'Fault',
      code: 'decision_stale',
    })
    await expect(client.session('nobody').status()).rejects.toBeInstanceOf(Fault)
    await expect(connect({ url: one.server.url, token: 'x'.repeat(43) }).server.me()).rejects.toBeInstanceOf(
      ServerRefusal,
    )
    await expect(connect({ url: 'http://127.0.0.1:1', token: 'x' }).open()).rejects.toMatchObject({
      code: 'unreachable',
    })
    expect(() => connect({ url: 'ftp://x', token: 'x' })).toThrow('http')
    await client.remove(fork.id)
    await expect(fork.status()).rejects.toMatchObject({ code: 'session_missing' })
  })

  it('B-SERVE-29: follows over lost connections: every event once, no text twice; and a lost answer is asked for again without a second change', async () => {
    const deltas = Array.from({ length: 30 }, (_, i) => `word${i} `)
    const gate = await between()
    const one = await served([{ deltas, stall: true }, 'Done.'], { serve: { names: [`127.0.0.1:${gate.port}`] } })
    gate.to(one.server.port)
    const through = clientOf(one, { url: `http://127.0.0.1:${gate.port}` })
    let lost = 0
    const losing: typeof fetch = async (url, init) => {
      const answer = await fetch(url, init)
      if (init?.method !== 'POST' || lost++ > 0) return answer
      await answer.text()
      throw new TypeError('fetch failed')
    }
    const session = await clientOf(one, { fetch: losing }).open()
    expect([lost, (await one.host.store.list({ limit: 10 })).length]).toEqual([2, 1])
    await session.send('Go.')
    const over = new AbortController()
    const seqs: number[] = []
    let said = ''
    const reading = (async () => {
      for await (const item of through.session(session.id).follow({ deltas: true, signal: over.signal }))
        if (item.type === 'event') seqs.push(item.event.seq)
        else said += item.text
    })()
    await until(() => expect(said).toBe(deltas.join('')))
    gate.cut()
    await until(() => expect(gate.sockets.size).toBeGreaterThan(0))
    await one.json('POST', `/v1/sessions/${session.id}/messages`, { body: { input: 'Now.', when: 'now' } })
    await until(async () => {
      const { events } = await one.host.store.read(session.id, 0)
      expect(events.at(-1)?.type).toBe('run.settled')
      expect(seqs).toEqual(events.map(({ seq }) => seq))
    })
    expect(said.startsWith(deltas.join(''))).toBe(true)
    expect(said.split('word29').length).toBe(2)
    over.abort()
    await reading
  })
})
