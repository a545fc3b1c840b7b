// `terret import --format`: transcripts of other programs as sessions of the command line, and models without tool calls.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { stageOfEach } from './scripted.ts'

const { stage, scriptedBy, provider } = stageOfEach()

const fixture = (name: string): string =>
  readFileSync(new URL(`../archive/foreign/fixtures/${name}`, import.meta.url), 'utf8')

it('B-FOREIGN-1 B-FOREIGN-4 B-FOREIGN-5: a transcript is imported, listed, searched, shown, forked and gone on with', async () => {
  await scriptedBy(['I list them again.', 'Forked.'])
  const file = stage.write('rollout.jsonl', fixture('codex.jsonl'))
  const { code, out } = await stage.terret('import', file, '--format', 'codex', '--id', 'shop')
  expect([code, out.trimEnd().split('\n')]).toEqual([
    0,
    [
      'Imported shop: 16 events.',
      '15 entries of the format codex, 7 left out.',
      'It is history: nothing of it was run.',
    ],
  ])
  expect((await stage.terret('list', '--search', 'list the files')).out).toMatch(/^shop\s.*List the files\.$/m)
  expect((await stage.terret('history', 'shop')).out).toMatch(
    /session\.imported +from a file, where it was codex:[0-9a-f]{12}$/m,
  )
  const page = (await stage.terret('export', 'shop', '--format', 'md')).out
  expect(page).toContain('There are two files.')
  const went = await stage.terret('run', '-c', '--session', 'shop', 'And now?')
  expect([went.code, went.out]).toEqual([0, expect.stringContaining('I list them again.') as string])
  const { session } = (await stage.json('fork', 'shop')) as { readonly session: string }
  expect((await stage.terret('run', '-c', '--session', session, 'And here?')).out).toContain('Forked.')
  const json = (await stage.json('import', file, '--format', 'codex')) as Readonly<Record<string, unknown>>
  expect(json).toMatchObject({ program: 'terret', from: { format: 'codex', entries: 15, leftOut: 7 } })
}, 60_000)

it('B-FOREIGN-7: what cannot be imported is refused in one line, and nothing is written', async () => {
  const file = stage.write('a.jsonl', fixture('claude-code.jsonl'))
  const refused = async (...args: readonly string[]): Promise<readonly [number, string]> => {
    const { code, out, err } = await stage.terret('import', ...args)
    expect(out).toBe('')
    expect(err).toMatch(/^terret: [^\n]+\n$/)
    return [code ?? -1, err]
  }
  expect(await refused(file, '--format', 'openhuman')).toEqual([
    2,
    expect.stringContaining('Choose one of: claude-code, codex, openai, anthropic.'),
  ])
  expect(await refused(file, '--format', 'anthropic')).toEqual([2, expect.stringContaining('no message of the format')])
  expect(await refused('gone.jsonl', '--format', 'codex')).toEqual([6, expect.stringContaining('cannot be read')])
  expect(await refused(file)).toEqual([2, expect.stringContaining('say with --format which other program wrote it')])
  mkdirSync(join(stage.folder, 'folder'))
  expect(await refused('folder', '--format', 'codex')).toEqual([6, expect.stringContaining('EISDIR')])
  writeFileSync(file, '')
  expect(await refused(file, '--format', 'codex')).toEqual([2, expect.stringContaining('it is empty')])
  expect((await stage.terret('list', '--all')).out).not.toMatch(/idle|running/)
  expect(existsSync('/tmp/terret-must-not-run')).toBe(false)
}, 60_000)

it('B-FOREIGN-6: secrets of the environment are not in the store', async () => {
  const secret = 'sk-very-secret-4711'
  const text = JSON.stringify([{ role: 'user', content: `My key is ${secret}.` }])
  const file = stage.write('a.json', text)
  const { code } = await stage.terretIn(
    { env: { MY_API_KEY: secret } },
    'import',
    file,
    '--format',
    'openai',
    '--id',
    'a',
  )
  expect(code).toBe(0)
  expect((await stage.terret('export', 'a', '--format', 'jsonl')).out).toMatch(/My key is ⟦secret:MY_API_KEY⟧/)
})

it('B-DIALECT-11: the configuration says how a model without tool calls writes its calls', async () => {
  await scriptedBy(['<tool_call>list[.]</tool_call>', 'There is a file.'])
  const chaos = provider.chaos
  const config = JSON.parse(readFileSync(join(stage.config, 'config.json'), 'utf8')) as {
    readonly model: string | readonly string[]
  }
  const name = [config.model].flat()[0] ?? ''
  stage.configure({ ...config, models: { dialects: { [name]: 'xml' } } })
  const { out, code } = await stage.terret('run', 'What is here?')
  expect([code, out]).toEqual([0, expect.stringContaining('There is a file.') as string])
  const bodies = (chaos?.requests ?? []).map((request) => JSON.stringify(request))
  expect(bodies.at(-1)).toContain('tool_result call=')
  stage.configure({ ...config, models: { dialects: { [name]: 'hermes' } } })
  const wrong = await stage.terret('run', 'What is here?')
  expect([wrong.code, wrong.err]).toEqual([
    7,
    expect.stringMatching(/models\.dialects\..*must be xml, invoke, function or fenced/) as string,
  ])
}, 60_000)
