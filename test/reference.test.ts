// The reference that is made from tables, and the texts it needs. What needs a compiler is in test/reference.long.test.ts.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { allSettings } from '../scripts/reference/configuration-page.ts'
import { FAILURE_TEXTS, FAULT_TEXTS, WIRE_TEXTS } from '../scripts/reference/error-texts.ts'
import { slug } from '../scripts/reference/markdown.ts'
import { SETTING_TEXTS } from '../scripts/reference/setting-texts.ts'
import { REFERENCE, tablePages } from '../scripts/reference/table-pages.ts'
import { TABLE } from '../src/cli/table.ts'
import { Fault, type FaultCode, Harness, memory, scripted } from '../src/index.ts'
import { SITE } from '../src/kernel/addresses.ts'
import { CODES } from '../src/kernel/codes.ts'
import { ROUTES } from '../src/server/wire-routes.ts'
import { chatHandler } from '../src/ui/index.ts'
import { linkAddress, type Site } from '../site/links.ts'
import { PARTS } from '../site/pages.ts'
import { readText, readTexts, repository } from './tidy/source.ts'

it('B-REF-1: every code has its section, where the address of a fault points', () => {
  const { homepage } = JSON.parse(readText('package.json')) as { readonly homepage: string }
  expect(SITE).toBe(homepage)
  const page = tablePages().get('errors.md') ?? ''
  const anchors = new Set([...page.matchAll(/^### (.+)$/gm)].map(([, heading = '']) => slug(heading)))
  for (const code of Object.keys(CODES) as FaultCode[])
    expect([new Fault(code, '').url, anchors.has(code)]).toEqual([`${homepage}/reference/errors#${code}`, true])
  for (const code of Object.keys(WIRE_TEXTS)) expect(anchors).toContain(code)
  expect(Object.keys(FAULT_TEXTS).sort()).toEqual(Object.keys(CODES).sort())
  const texts = [...Object.values(FAULT_TEXTS), ...Object.values(WIRE_TEXTS)].flatMap((text) => [
    text.cause,
    text.remedy,
  ])
  for (const text of [...texts, ...Object.values(FAILURE_TEXTS)]) expect(text).toMatch(/^\S.*[.?]$/)
})

it('B-REF-2: a chat handler answers a fault by the table of the server', async () => {
  const harness = new Harness({ model: scripted([]), store: memory() })
  const by = (): never => {
    throw new Fault('store_busy', 'Busy.')
  }
  const handle = chatHandler(harness, { by })
  const answer = await handle(new Request('http://localhost/chat/a/messages'))
  expect([answer.status, await answer.json()]).toEqual([
    CODES.store_busy.status,
    { code: 'store_busy', message: 'Busy.' },
  ])
  await harness.close()
  const others = Object.entries(CODES).flatMap(([code, { chatStatus }]) => (chatStatus ? [[code, chatStatus]] : []))
  expect(others).toEqual([
    ['id_reused', 409],
    ['too_many', 413],
    ['invalid_config', 500],
  ])
})

it('B-REF-3: the pages made from tables are up to date. If this fails, run: npm run reference', () => {
  for (const [path, text] of tablePages()) {
    const file = new URL(`../${REFERENCE}/${path}`, import.meta.url)
    expect(existsSync(file) && readFileSync(file, 'utf8') === text, `${path} is out of date`).toBe(true)
  }
})

it('B-REF-4: every command, flag, setting and route has a text', () => {
  const settings = allSettings().map(({ path }) => path)
  expect(settings.filter((path) => !isText(SETTING_TEXTS[path]))).toEqual([])
  expect(Object.keys(SETTING_TEXTS).filter((path) => !settings.includes(path))).toEqual([])
  expect(Object.entries(ROUTES).filter(([, { says }]) => !isText(says))).toEqual([])
  const commands = Object.entries(TABLE).flatMap(([name, { says, flags }]) => [
    [name, says] as const,
    ...Object.entries(flags).map(([flag, { says: text }]) => [`${name} --${flag}`, text] as const),
  ])
  expect(commands.filter(([, says]) => !isText(says)).map(([name]) => name)).toEqual([])
})

it('B-REF-8: every guide, recipe and page of the reference stands in one part of the site', () => {
  const listed = PARTS.flatMap(({ pages }) => pages.map(({ path }) => path))
  const there = ['guide', 'recipes', 'reference'].flatMap((folder) => {
    const names = readdirSync(new URL(`../docs/${folder}`, import.meta.url)).filter((name) => name.endsWith('.md'))
    return names.map((name) => `docs/${folder}/${name.slice(0, -3)}`)
  })
  expect(there.filter((path) => !listed.includes(path))).toEqual([])
  expect(listed.filter((path, i) => listed.indexOf(path) !== i)).toEqual([])
})

it('B-REF-9: links lead to pages of the site, to files of the repository, or fail', () => {
  const site: Site = {
    root: repository,
    files: 'https://files',
    addressOf: (path) => (path.startsWith('docs/') && !path.includes('decisions') ? `/${path.slice(5, -3)}` : null),
  }
  const from = 'docs/guide/tools.md'
  expect(linkAddress(site, from, 'models.md#outages')).toBe('/guide/models#outages')
  expect(linkAddress(site, from, '#tools')).toBe('/guide/tools#tools')
  expect(linkAddress(site, from, '../../examples/05-models.ts')).toBe('https://files/blob/main/examples/05-models.ts')
  expect(linkAddress(site, from, '../decisions/')).toBe('https://files/tree/main/docs/decisions')
  expect(linkAddress(site, from, 'https://a.example/b')).toBe('https://a.example/b')
  for (const href of ['no.md', 'models.md#nowhere', '../../../outside.md'])
    expect(() => linkAddress(site, from, href)).toThrow(`${from} links to ${href}, which is not there.`)
  const pages = readTexts('docs').filter(
    ({ path }) => path.endsWith('.md') && !/decisions|behavior|inventory|scenarios/.test(path),
  )
  for (const { path, text } of pages)
    for (const [, href = ''] of text.replace(/^(```|~~~)[^]*?^\1|`[^`]*`/gm, '').matchAll(/\]\(([^)\s]+)\)/g))
      linkAddress(site, path, href)
})

function isText(text: string | undefined): boolean {
  return text !== undefined && /\S{2}/.test(text)
}
