// A line without a command, output for programs, and decisions without an id. The chat at a terminal: terminal-start.long.test.ts.
import { describe, expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { provider, scriptedBy, stage } = stageOfEach()
const write = (path: string) => ({ calls: [{ tool: 'write', args: { path, content: 'x' } }] })
const lines = (out: string) =>
  out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
const typesOf = (out: string) => lines(out).map(({ type }) => type)

describe('a line without a command', () => {
  it('B-CLI-400: a word without a space is a command, so a mistyped one is refused and nothing is sent', async () => {
    await scriptedBy(['Never.'])
    for (const [line, said] of [
      [['aprove'], 'There is no command "aprove". Did you mean `terret approve`?'],
      [['fix', 'the test'], 'There is no command "fix". Run `terret --help` to see what there is.'],
      [['--modle', 'x', 'fix the test'], 'There is no flag --modle. Run `terret --help` to see what there is.'],
    ] as const)
      expect(await stage.refused(...line)).toMatchObject({ code: 2, out: '', err: `terret: ${said}\n` })
    expect(provider.chaos?.requests).toEqual([])
  })

  it.each([[['fix the test']], [['-c']], [['--continue', 'and the docs']], [['--model', 'offline:any', 'fix it now']]])(
    'B-CLI-401: without a terminal %j is refused, because it is a chat',
    async (line) => {
      const { code, out, err } = await stage.refused(...line)
      expect([code, out]).toEqual([2, ''])
      expect(err).toBe('terret: A chat needs a terminal. In a script, use: terret -p TASK\n')
    },
  )

  it('B-CLI-401: -p is run, wherever it stands before the text ends', async () => {
    await scriptedBy(['One.', 'Two.', 'Three.'])
    expect(await stage.terret('-p', 'What', 'is', 'it?')).toMatchObject({ code: 0, out: 'One.\n' })
    expect(await stage.terret('--quiet', '--print', '-c', 'And now?')).toMatchObject({
      code: 0,
      out: 'Two.\n',
      err: '',
    })
    expect(await stage.start(['-p', 'Explain.'], { stdin: 'the log' }).ended).toMatchObject({ out: 'Three.\n' })
    const sent = provider.chaos?.requests.map(({ body }) => JSON.stringify(body)) ?? []
    expect(sent[0]).toContain('"What is it?"')
    expect(sent[1]).toContain('"And now?"')
    expect(sent[2]).toContain('<file name=\\"standard input\\">\\nthe log')
    const [none, wrong] = [await stage.refused('-p'), await stage.refused('-p', '--frob', 'x')]
    expect([none.code, wrong.code]).toEqual([2, 2])
    expect(none.err).toContain('The task is missing.')
    expect(wrong.err).toContain('`terret run` has no flag --frob.')
  })
})

describe('output for programs', () => {
  it('B-CLI-402: stream-json is every event of the log, what is being said, and the result, one a line', async () => {
    await scriptedBy(['Hello.', 'Again.'])
    const { code, out, err } = await stage.terret('-p', '--output-format', 'stream-json', 'Hi.')
    expect([code, err]).toEqual([0, ''])
    const [hello, ...rest] = lines(out)
    const id = String(hello?.['session'])
    expect(hello).toEqual({ type: 'hello', session: id, after: 0 })
    const logged = (await stage.terret('tail', id, '--lines', '100', '--settled', '--json')).out
    expect(rest.filter(({ seq, type }) => seq !== undefined && type !== 'delta')).toEqual(lines(logged))
    expect(rest.find(({ type }) => type === 'delta')).toMatchObject({ kind: 'text', offset: 0, text: 'Hello.' })
    expect(rest.at(-1)).toMatchObject({ type: 'result', session: id, status: 'completed', text: 'Hello.' })

    const more = lines((await stage.terret('run', '-c', '--output-format', 'stream-json', 'More.')).out)
    expect(more[0]).toEqual({ type: 'hello', session: id, after: lines(logged).length })
    expect(more.at(-1)).toMatchObject({ type: 'result', session: id, text: 'Again.' })
  })

  it('B-CLI-402: a call that waits ends the stream with exit code 3, and resume goes on with it', async () => {
    await scriptedBy([write('a'), 'Written.'])
    const waits = await stage.terret('-p', '--output-format=stream-json', 'Write.')
    expect(waits.code).toBe(3)
    expect(lines(waits.out).at(-1)).toMatchObject({ type: 'result', status: 'requires_action' })
    await stage.terret('approve')
    const rest = await stage.terret('resume', 'latest', '--output-format', 'stream-json')
    expect(rest.code).toBe(0)
    expect(typesOf(rest.out)).toContain('agent.tool_result')
    expect(lines(rest.out).at(-1)).toMatchObject({ type: 'result', text: 'Written.' })
  })

  it('B-CLI-402: json is --json, text is the default, and what fits neither is refused', async () => {
    await scriptedBy(['One.', 'Two.'])
    const one = lines((await stage.terret('-p', '--output-format', 'json', 'Hi.')).out)
    expect(one).toMatchObject([{ status: 'completed', text: 'One.' }])
    expect(one[0]).not.toHaveProperty('type')
    expect((await stage.terret('-p', '--output-format', 'text', 'Hi.')).out).toBe('Two.\n')
    for (const [line, said] of [
      [['--output-format', 'yaml'], '--output-format must be text, json or stream-json, not "yaml".'],
      [['--output-format', ''], '--output-format must be text, json or stream-json, not "".'],
      [
        ['--json', '--output-format', 'text'],
        '--json and --output-format text exclude each other. Leave one of them out.',
      ],
      [
        ['--outcome', 'r.md', '--output-format', 'stream-json'],
        '--outcome has several runs, so it takes --output-format text or json.',
      ],
    ] as const)
      expect(await stage.refused('-p', ...line, 'Hi.')).toMatchObject({ code: 2, out: '', err: `terret: ${said}\n` })
    const none = await stage.refused('resume', 'latest', '--output-format', 'xml')
    expect([none.code, none.err]).toEqual([2, expect.stringContaining('not "xml"')])
  })
})

describe('a decision without an id', () => {
  it('B-CLI-403: decides the only call that waits; names several, and decides none of them', async () => {
    await scriptedBy([write('a'), write('b'), 'Refused then.'])
    const nothing = { code: 9, out: '', err: 'terret: No call of this folder waits for an approval.\n' }
    expect(await stage.terret('approve')).toEqual(nothing)
    await stage.terret('run', 'Write.')
    await stage.terret('run', 'Write again.')
    const several = await stage.terret('approve')
    expect([several.code, several.out]).toEqual([2, ''])
    expect(several.err).toMatch(
      /^terret: Several calls wait\. Name one of them: \w{8} \d+\.0 \(write\), \w{8} \d+\.0 \(write\)\n$/,
    )
    expect((await stage.terret('approve', 'latest')).code).toBe(0)
    const refused = await stage.terret('reject', '--why', 'no', '--resume')
    expect(refused).toMatchObject({ code: 0, out: 'Refused then.\n' })
    expect((await stage.terret('reject')).code).toBe(9)
  })
})
