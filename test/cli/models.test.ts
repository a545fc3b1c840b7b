// `terret models`, and what `doctor` asks the hosts of models, at a real server.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()
const KEY = 'sk-models-0123456789'

/** A host with these models. With `status` it refuses to list them. */
async function host(ids: readonly string[], status = 200): Promise<string> {
  const server = createServer((asked, answer) => {
    let text = ''
    asked.on('data', (chunk: Buffer) => (text += chunk.toString()))
    asked.on('end', () => {
      const said = (code: number, body: object): void => {
        answer.writeHead(code, { 'content-type': 'application/json' })
        answer.end(JSON.stringify(body))
      }
      if (asked.method === 'GET') {
        const data = ids.map((id) => ({
          id,
          context_length: 64_000,
          pricing: { prompt: '0.000001', completion: '0.000004' },
        }))
        return said(status, status === 200 ? { data } : { error: { message: `No list for ${KEY}.` } })
      }
      const { model } = JSON.parse(text) as { model: string }
      if (!ids.includes(model)) return said(404, { error: { message: `The model ${model} does not exist.` } })
      const message = { role: 'assistant', content: 'ok' }
      return said(200, { id: 'a', model, choices: [{ index: 0, message, finish_reason: 'stop' }] })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const env = { MINE_API_KEY: KEY }

describe('terret models', () => {
  it('B-CLI-198: hosts are listed with their keys, and the models of a host with window and price', async () => {
    stage.configure({ endpoints: { mine: { baseUrl: await host(['large', 'small']), keys: ['MINE_API_KEY'] } } })
    const hosts = await stage.terretIn({ env }, 'models')
    expect(hosts.code).toBe(0)
    expect(hosts.out).toMatch(/^anthropic +messages +key missing +ANTHROPIC_API_KEY$/m)
    expect(hosts.out).toMatch(/^ollama +chat +key none needed$/m)
    expect(hosts.out).toMatch(/^mine +chat +key set +MINE_API_KEY$/m)
    const { code, out } = await stage.terretIn({ env }, 'models', 'mine')
    expect([code, out.trimEnd().split('\n')]).toEqual([
      0,
      [
        expect.stringMatching(
          /^mine:large +64k {2}\$3 in, \$15 out a million \(price unknown: counted as this\)$/,
        ) as string,
        expect.stringMatching(/^mine:small /) as string,
      ],
    ])
    const json = await stage.terretIn({ env }, 'models', 'mine', '--json')
    expect(JSON.parse(json.out.split('\n')[0] ?? '')).toMatchObject({
      model: 'mine:large',
      contextTokens: 64_000,
      price: { input: 3, output: 15 },
      assumed: true,
    })
  })

  it('B-CLI-198: trouble is one line without the key', async () => {
    stage.configure({ endpoints: { mine: { baseUrl: await host([], 500), keys: ['MINE_API_KEY'] } } })
    const failed = await stage.terretIn({ env }, 'models', 'mine')
    expect([failed.code, failed.err.trimEnd().split('\n').length]).toEqual([1, 1])
    expect(failed.err).toContain('HTTP 500: No list for [key].')
    expect(await stage.terret('models', 'mine')).toMatchObject({ code: 7, out: '' })
    const unknown = await stage.terret('models', 'nowhere')
    expect([unknown.code, unknown.err]).toEqual([7, expect.stringContaining('There is no provider "nowhere"')])
  })

  it('B-DOCTOR-23: doctor asks the host for its models, and names the nearest for one that is not there', async () => {
    const models = ['mine:large', 'mine:smal']
    stage.configure({ model: models, endpoints: { mine: { baseUrl: await host(['large', 'small']) } } })
    const { out } = await stage.terret('doctor')
    expect(out).toMatch(
      /^model mine:large +ok +its host offers 2 models; its host says that it takes 64000 tokens: set context\.compaction\.windowTokens/m,
    )
    expect(out).toMatch(
      /^model mine:smal +model_missing +.*Did you mean mine:small\? .*terret.* models mine.* lists what it offers/m,
    )
    stage.configure({ model: 'mine:large', endpoints: { mine: { baseUrl: await host(['large'], 404) } } })
    const quiet = await stage.terret('doctor')
    expect(quiet.out).not.toContain('offers')
  })
})

describe('routes of the configuration', () => {
  it('B-DOCTOR-24: doctor says what each workload comes to, asks the models of routes, and says what is wrong with routes', async () => {
    const endpoints = { mine: { baseUrl: await host(['large', 'small']), keys: ['MINE_API_KEY'] } }
    const routes = { chat: 'mine:large', burst: 'mine:small', reasoning: 'hint:chat' }
    stage.configure({ endpoints, model: 'hint:coding', models: { routes: { ...routes, coding: 'mine:gone' } } })
    const { out, code } = await stage.terretIn({ env }, 'doctor')
    expect(out).toMatch(/^route chat +ok +mine:large, window not known, price not known; then mine:small$/m)
    expect(out).toMatch(/^route burst +ok +mine:small, .*; then mine:large$/m)
    expect(out).toMatch(/^route summarization +ok +mine:large \(route chat\), /m)
    expect(out).toMatch(/^route agentic +ok +mine:large \(route reasoning\), /m)
    expect(out).toMatch(/^route vision +missing +not set: a run that asks for it with a picture is refused$/m)
    expect(out).toMatch(/^model mine:small +ok/m)
    expect(out).toMatch(/^model mine:gone +model_missing/m)
    expect(code).toBe(1)
    stage.configure({ endpoints, model: 'mine:large', models: { routes: { chat: 'hint:chat' } } })
    expect((await stage.terretIn({ env }, 'doctor')).out).toMatch(
      /^routes +misconfigured +Routes name each other in a ring/m,
    )
  })

  it('B-CLI-220: a run has the model of the route it asks for; unknown workloads, missing keys and routes of a workspace are refused', async () => {
    const endpoints = { mine: { baseUrl: await host(['large', 'small']), keys: ['MINE_API_KEY'] } }
    const routes = { chat: 'mine:large', burst: 'mine:small' }
    stage.configure({ endpoints, model: 'hint:summarization', models: { routes }, tools: ['parallel_llm'] })
    const asked = async (...args: readonly string[]) => {
      const { code, out, err } = await stage.terretIn({ env }, 'run', 'Hello.', '--verbose', ...args)
      return { code, text: out.trim(), models: [...err.matchAll(/"model":"(\w+)"/g)].map(([, name]) => name) }
    }
    // The second is asked for the title of the session.
    expect(await asked()).toMatchObject({ code: 0, text: 'ok', models: ['large', 'small'] })
    expect(await asked('--model', 'hint:burst')).toMatchObject({ code: 0, models: ['small', 'small'] })
    expect((await stage.terretIn({ env }, 'run', 'Hello.', '--model', 'hint:coding')).err).toContain(
      'Set models.routes.coding or models.routes.agentic.',
    )
    expect((await stage.terretIn({ env }, 'run', 'Hello.', '--model', 'hint:chatt')).err).toContain(
      'Did you mean "chat"?',
    )
    expect((await stage.terret('run', 'Hello.')).err).toContain('There is no key for mine.')
    // Offline there is no network, and no key is needed.
    expect((await stage.terret('run', 'Hello.', '--model', 'offline:any')).code).toBe(0)
    stage.write('work/.terret/config.json', JSON.stringify({ models: { routes: { burst: 'mine:large' } } }))
    expect((await stage.terretIn({ env }, 'run', 'Hello.', '--trust')).err).toContain(
      '"models" is not for a workspace to choose',
    )
    stage.write('work/.terret/config.json', '{}')
    stage.configure({ endpoints, model: 'mine:large', models: { routes: { chatt: 'mine:large' } } })
    expect((await stage.terretIn({ env }, 'run', 'Hello.')).err).toContain(
      '"models.routes.chatt" is not known. Did you mean "chat"?',
    )
  })

  it.each([
    [{ chat: 'hint:chat' }, 'Routes name each other in a ring: "chat" → "chat".'],
    [{ chat: 'bogus' }, '"bogus" is not a model name.'],
    [{ chat: 'nobody:x' }, 'There is no provider "nobody".'],
    [{ summarization: 'hint:burst' }, 'there is no route "burst". Set models.routes.burst'],
    [{ summarization: 'hint:brust' }, 'There is no workload "brust". Did you mean "burst"?'],
  ])(
    'B-CLI-222: wrong routes are refused in one line before a run, also of a run without a network: %o',
    async (routes, why) => {
      const endpoints = { mine: { baseUrl: await host(['large']), keys: ['MINE_API_KEY'] } }
      for (const model of ['offline:any', 'mine:large']) {
        stage.configure({ endpoints, model, models: { routes } })
        const { code, out, err } = await stage.terretIn({ env }, 'run', 'Hello.')
        expect([code, out, err.trimEnd().split('\n').length]).toEqual([7, '', 1])
        expect(err).toContain(why)
      }
      // That a key is missing matters to a run that may use it, and to no other.
      stage.configure({ endpoints, model: 'offline:any', models: { routes: { chat: 'mine:large' } } })
      expect((await stage.terret('run', 'Hello.')).code).toBe(0)
    },
  )
})
