// `terret export --html`: the form of the file. How it looks and acts in a browser is in the long tests.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, memory, type Script, scripted } from '../../src/index.ts'
import type { SessionFile } from '../../src/server/wire-file.ts'
import { buildPage, buildSessionFile } from '../../src/cli/state/session-page.ts'
import type { CompleteStore } from '../../src/ports/store.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()
const offline = ['--model', 'offline:any'] as const
const HOSTILE = '</script><script>alert(1)</script><!-- \u2028\u2029 \u202E {{SESSION}} $& $1 \u0000'

/** What stands inside a page. */
function fileIn(page: string): SessionFile {
  const [, json = ''] = /<script type="application\/json" id="session">(.*?)<\/script>/s.exec(page) ?? []
  return JSON.parse(json) as SessionFile
}

async function told(script: Script, size = 10) {
  const store = memory()
  const say = defineTool({
    name: 'say',
    description: 'Says it',
    input: z.object({}),
    effect: 'read',
    execute: async () => 'x'.repeat(size),
  })
  const harness = new Harness({ model: scripted(script), store, tools: [say], results: { compression: 'off' } })
  onTestFinished(() => harness.close())
  const session = await harness.open({ folder: '/home/ana/secret-project' })
  await session.run(HOSTILE)
  const card = await store.card(session.id)
  if (!card) throw new Error('no card')
  return { harness, store, card, session: session.id }
}

it('B-EXPORT-1: the file is one page with the log inside: no address of elsewhere, a policy with the hashes of its script and style', async () => {
  const out = join(stage.folder, 'session.html')
  await stage.terret('run', ...offline, `Say ${HOSTILE.replace('\u0000', '')}`)
  const { code, err } = await stage.terret('export', 'latest', '--html', '--out', out)
  expect([code, err]).toEqual([0, expect.stringMatching(/^Wrote .*session\.html: \d+ kB, \d+ events, \d+ files\.\n$/)])
  expect(statSync(out).mode & 0o777).toBe(0o600)
  const page = readFileSync(out, 'utf8')
  const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(page) ?? []
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(page) ?? []
  const [, script = ''] = /<script>(.*?)<\/script>/s.exec(page) ?? []
  const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
  expect(policy).toContain(
    `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; img-src data:`,
  )
  expect(page.match(/<script\b/g)?.length).toBe(3)
  expect(page.match(/<\/script/g)?.length).toBe(3)
  const bare = page.replace(/<(script|style)[^>]*>.*?<\/\1>/gs, '')
  expect(bare.match(/(?:src|href)="[^"]*"/g)).toEqual(['href="data:,"'])
  const { session, sessions, format } = fileIn(page)
  expect(format).toBe('terret.page')
  expect(JSON.stringify(sessions[session]?.events)).toContain('</script><script>alert(1)</script>')
  expect(page.includes(stage.folder)).toBe(false)
})

it('B-EXPORT-2: no text of a log ends the element it stands in, and none of it is lost', async () => {
  const { store, card, session } = await told([HOSTILE])
  const page = buildPage(await buildSessionFile(store, card))
  const inside = page.slice(page.indexOf('id="session"'), page.indexOf('<script type="text/plain"'))
  expect(inside.match(/</g)).toHaveLength(1)
  expect(inside).not.toMatch(/[\u2028\u2029\u202e]/)
  const events = fileIn(page).sessions[session]?.events ?? []
  expect(events.find(({ type }) => type === 'user.message')).toMatchObject({ parts: [{ text: HOSTILE }] })
})

it('B-EXPORT-3: the folder of the session is left out, as in every export', async () => {
  const { store, card } = await told(['Done.'])
  expect(JSON.stringify(card)).toContain('secret-project')
  expect(buildPage(await buildSessionFile(store, card)).includes('secret-project')).toBe(false)
})

it('B-EXPORT-4: files that the log refers to are in it up to a size; what is left out is named, with its size', async () => {
  const small = await told([{ calls: [{ tool: 'say' }] }, 'Done.'], 200_000)
  const file = await buildSessionFile(small.store, small.card)
  expect(file.left).toEqual([])
  const result = file.sessions[small.session]?.events.find(({ type }) => type === 'agent.tool_result')
  const { hash = '' } = (result as { readonly content?: { readonly hash?: string } }).content ?? {}
  expect(Buffer.from(file.blobs[hash]?.data ?? '', 'base64').toString()).toContain('xxxx')
  const large = await told([{ calls: [{ tool: 'say' }] }, 'Done.'], 1_500_000)
  const cut = await buildSessionFile(large.store, large.card)
  expect(cut.left).toEqual([expect.stringMatching(/^The file [0-9a-f]{64} \(.*, 1\.5 MB\)\.$/)])
  expect(buildPage(cut).length).toBeLessThan(1_000_000)
})

it('B-EXPORT-5: of a damaged log the part that can be read is in it, and it says so', async () => {
  const { store, card, session } = await told(['Done.'])
  const read: CompleteStore['read'] = async (id, after, limit) => {
    const { events } = await store.read(id, after, limit)
    return { events: events.filter(({ seq }) => seq < 4), damaged: { seq: 4, reason: 'its checksum is wrong' } }
  }
  const damaged = new Proxy<CompleteStore>(store, {
    get: (target, name) => {
      const own: unknown = Reflect.get(target, name, target)
      return name === 'read' ? read : typeof own === 'function' ? (own.bind(target) as unknown) : own
    },
  })
  const file = await buildSessionFile(damaged, card)
  expect(file.sessions[session]?.events.map(({ seq }) => seq)).toEqual([1, 2, 3])
  expect(file.sessions[session]?.damaged).toEqual({ seq: 4, reason: 'its checksum is wrong' })
  expect(file.left).toEqual([expect.stringContaining('the events before 4 are here')])
})

it('B-EXPORT-6: a fork brings the log it came from, up to where it left it', async () => {
  const { harness, store, session } = await told(['One.', 'Two.', 'Three.'])
  await harness.session(session).run('Again.')
  const fork = await harness.session(session).fork({ at: 6 })
  await fork.run('Otherwise.')
  const card = await store.card(fork.id)
  if (!card) throw new Error('no card')
  const { sessions } = await buildSessionFile(store, card)
  expect(Object.keys(sessions)).toEqual([fork.id, session])
  expect(sessions[session]?.events.at(-1)?.seq).toBeLessThanOrEqual(6)
})

it('B-EXPORT-7: bad input is one sentence: no such session, a file that exists, two formats', async () => {
  await stage.terret('run', ...offline, 'One.')
  const out = join(stage.folder, 'a.html')
  const missing = await stage.terret('export', 'zzz', '--html', '--out', out)
  expect([missing.code, missing.err, existsSync(out)]).toEqual([6, expect.stringContaining('no session "zzz"'), false])
  expect((await stage.terret('export', 'latest', '--html', '-o', out)).code).toBe(0)
  const before = readFileSync(out, 'utf8')
  const again = await stage.terret('export', 'latest', '--format', 'html', '-o', out)
  expect([again.code, again.err, readFileSync(out, 'utf8') === before]).toEqual([
    9,
    `terret: ${out} exists already. Name another place, or remove it.\n`,
    true,
  ])
  const both = await stage.terret('export', 'latest', '--html', '--format', 'md')
  expect([both.code, both.err]).toEqual([
    2,
    'terret: --html and --format name different formats. Give one of the two.\n',
  ])
  expect((await stage.terret('export', '--help')).out).toMatch(/--html\s+as --format html: one page for a browser/)
  const said = (await stage.json('export', 'latest', '--html', '-o', join(stage.folder, 'b.html'))) as object
  expect(said).toMatchObject({ format: 'html', bytes: expect.any(Number) as number, left: [] })
  expect((await stage.terret('export', 'latest', '--html')).out.slice(0, 15)).toBe('<!doctype html>')
})
