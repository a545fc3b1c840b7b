// The chat at a real terminal with a session of a server: two terminals, a program, and a server that goes away.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { connect } from '../../src/client/index.ts'
import { stageOfEach } from './scripted.ts'
import type { Started } from './stage.ts'
import { noTmux, openScreen, PROMPT, type Screen } from './terminal.ts'

const { provider, scriptedBy, stage } = stageOfEach()
const write = (path: string) => ({ calls: [{ tool: 'write', args: { path, content: `${path}\n` } }] })
const ASKED = /Allow it\?[^?]*›$/
const AWAY = 'The server is away. What you enter is kept, and goes on when it is back.'

type Served = Started & { readonly url: string }

async function serve(port = '0'): Promise<Served> {
  const server = stage.start(['serve', '--port', port])
  onTestFinished(() => void server.child.kill('SIGKILL'))
  let out = ''
  server.child.stderr?.on('data', (text: string) => (out += text))
  server.child.stdout?.on('data', (text: string) => (out += text))
  await server.says('http://')
  return { ...server, url: /http:\/\/127\.0\.0\.1:\d+/.exec(out)?.[0] ?? '' }
}

async function chat(line: string): Promise<Screen> {
  const opened = openScreen(stage)
  opened.enter(`clear; terret ${line}`)
  await opened.until(PROMPT)
  return opened
}

const token = (): string =>
  String((JSON.parse(readFileSync(join(stage.home, 'tokens.json'), 'utf8')) as { readonly own: unknown }).own)
const times = (text: string, part: string): number => text.split(part).length - 1
const asked = async (count: number): Promise<void> => {
  while ((provider.chaos?.requests.length ?? 0) < count) await new Promise((resolve) => void setTimeout(resolve, 20))
}

it('B-CLI-402: stream-json with a server has the same lines as here', async () => {
  await scriptedBy(['Here.', 'There.'])
  const typesOf = (out: string) =>
    out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { readonly type: string }).type)
      .filter((type) => type !== 'delta')
  const here = await stage.apart('run', '--output-format', 'stream-json', 'Hi.')
  const { url } = await serve()
  const there = await stage.apart('--server', url, 'run', '--output-format', 'stream-json', 'Hi.')
  expect([there.code, there.err]).toEqual([0, ''])
  expect(typesOf(there.out)).toEqual(typesOf(here.out))
  expect(there.out.trim().split('\n').at(-1)).toContain('"text":"There."')
}, 60_000)

describe.skipIf(noTmux)('a chat with a server', { timeout: 180_000 }, () => {
  it('B-CLI-410: two terminals and a program on one session see the same, and a question is asked in both and decided once', async () => {
    await scriptedBy(['Hello there.', write('one.txt'), 'One is written.', 'The program was heard.'])
    const { url } = await serve()
    const first = await chat('--server "Say hello."')
    await first.until(/Hello there\.[\s\S]*\n›$/)
    expect(times(first.text(), '› Say hello.')).toBe(1)
    expect(first.text()).toContain('· server ·')
    const second = await chat(`--server ${url} interactive latest`)
    await second.until(/› Say hello\.[\s\S]*Hello there\.[\s\S]*\n›$/)

    second.enter('Write one.')
    await second.until(ASKED)
    const question = await first.until(ASKED)
    expect(question).toContain('› Write one.')
    expect(question).not.toContain('always')
    first.enter('y')
    await first.until(/One is written\.[\s\S]*\n›$/)
    const other = await second.until(/One is written\.[\s\S]*\n›$/)
    expect(other).toMatch(/This question is withdrawn: allowed by/)
    expect(existsSync(join(stage.folder, 'one.txt'))).toBe(true)

    const client = connect({ url, token: token() })
    const { cards } = await client.list({ limit: 1 })
    await client.session(cards[0]?.session ?? '').send('From a program.')
    for (const seen of [first, second]) {
      const text = await seen.until(/› From a program\.[\s\S]*The program was heard\.[\s\S]*\n›$/)
      for (const block of ['Hello there.', '✓ write one.txt', 'One is written.', 'The program was heard.'])
        expect({ block, times: times(text, block) }).toEqual({ block, times: 1 })
    }
    const said = (await client.session(cards[0]?.session ?? '').messages()).filter(({ role }) => role === 'user')
    expect(said.length).toBeGreaterThanOrEqual(3)
    await client.close()

    first.enter('/mode auto')
    await first.until('The mode is that of the server')
    first.enter('/model')
    await first.until('as the server has it')
    first.enter('!ls')
    const refused =
      'A command after "!" would run on this machine, and this session is on a server: ask the agent to run it, or run it in a terminal there\\.'
    await first.until(new RegExp(`${refused.replaceAll(' ', '(?: |\\n┆ )')}[\\s\\S]*\\n›$`))
    first.keys('C-d')
    await first.until(/Go on with: terret --server http:\/\/127\.0\.0\.1:\d+ interactive \w{8}/)
  })

  it('B-CLI-411: while the server is away there is one line, the draft stays, and what was entered is sent once', async () => {
    await scriptedBy(['Hello there.', 'Late, but here.', 'And on.'])
    const server = await serve()
    const seen = await chat(`--server ${server.url}`)
    seen.enter('Say hello.')
    await seen.until(/Hello there\.[\s\S]*\n›$/)
    server.child.kill('SIGKILL')
    await server.ended
    await seen.until(AWAY)
    seen.type('sent while it was away')
    await seen.until('› sent while it was away')
    seen.keys('Enter')
    seen.type('a draft')
    await seen.until(/› a draft$/)
    const again = await serve(new URL(server.url).port)
    const back = await seen.until(/The server is back\.[\s\S]*Late, but here\.[\s\S]*› a draft$/)
    expect([times(back, AWAY), times(back, 'The server is back.'), times(back, '!')]).toEqual([1, 1, 0])
    expect(times(back, 'sent while it was away')).toBe(1)
    seen.keys('Enter')
    await seen.until(/› a draft[\s\S]*And on\.[\s\S]*\n›$/)
    expect(provider.chaos?.requests).toHaveLength(3)

    again.child.kill('SIGKILL')
    await again.ended
    await seen.until(new RegExp(`And on\\.[\\s\\S]*${AWAY.slice(0, 20)}`))
    seen.keys('C-d')
    await seen.until(/Go on with: terret --server[^\n]*\n\$$/)
  })

  it('B-CLI-411: a run that was followed when the server died is followed on', async () => {
    await scriptedBy([{ text: 'Never whole.', deltas: 9, chaos: { stallAfterBytes: 500 } }, 'Whole again.'])
    const server = await serve()
    const seen = await chat(`--server ${server.url}`)
    seen.enter('Say something.')
    await asked(1)
    server.child.kill('SIGKILL')
    await server.ended
    await seen.until(AWAY)
    await serve(new URL(server.url).port)
    const shown = await seen.until(/The server is back\.[\s\S]*Whole again\.[\s\S]*\n›$/)
    expect(times(shown, '› Say something.')).toBe(1)
  })

  it('B-CLI-410: flags for the process that drives, a wrong token and a server that is not there are refused in one line', async () => {
    await scriptedBy(['Never.'])
    const { url } = await serve()
    const seen = openScreen(stage)
    for (const [line, said] of [
      [`--server ${url} --mode auto`, '--mode is for the process that drives, which is the server.'],
      [`--server ${url} --model offline:any`, 'The agent of a server has its model.'],
      ['--server http://127.0.0.1:9', 'is no server of this data folder that runs now'],
      [`--server ${url} --token-file none`, 'The token cannot be read from none.'],
      [`--server ${url} interactive nothing`, 'There is no session "nothing".'],
    ] as const) {
      seen.enter(`clear; terret ${line}; echo ended`)
      await seen.until(new RegExp(`${said.replace(/[."]/g, '.').replaceAll(' ', '(?: |\\n┆ )')}[\\s\\S]*ended\\n\\$$`))
    }
    expect(provider.chaos?.requests).toEqual([])
  })
})
