// The site as it is built, in a real browser: what its search finds, that it asks nobody else, and that no page is wider than the
// window. It needs VitePress, which `npm ci` in site/ brings.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { repository } from './tidy/source.ts'
import { browser, noChromium } from './ui/browser.ts'

const site = join(repository, 'site')
const dist = join(site, 'dist')
const BASE = '/terret/'

/** Why the site cannot be built here, or null. */
function buildSite(): string | null {
  if (!existsSync(join(site, 'node_modules', 'vitepress'))) {
    const installed = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: site,
      encoding: 'utf8',
    })
    if (installed.status !== 0) return `npm ci: ${installed.stderr}`
  }
  const { status, stdout, stderr } = spawnSync('npm', ['run', '-s', 'docs'], { cwd: repository, encoding: 'utf8' })
  return status === 0 ? null : `npm run docs: ${stdout}${stderr}`
}

const isInstalled =
  existsSync(join(site, 'node_modules', 'vitepress')) || process.env['TERRET_REQUIRE_SITE'] !== undefined

interface Question {
  readonly question: string
  readonly pages: readonly string[]
  /** The row of the table without its last two columns. */
  readonly row: string
  readonly heldBack: boolean
}

/** The tables of site/questions.md. */
function questionsOf(text: string): readonly Question[] {
  const [known = '', heldBack = ''] = text.split('\n## Held back\n')
  return [known, heldBack].flatMap((part) =>
    [...part.matchAll(/^(\| (?!question|---)(.+?) \| (.+?) \|) .+ \|$/gm)].map(
      ([, row = '', question = '', pages = '']) => ({
        question,
        pages: pages.split(', '),
        row,
        heldBack: part === heldBack,
      }),
    ),
  )
}

describe.skipIf(noChromium || !isInstalled)('the site', { timeout: 900_000 }, () => {
  let server: Server
  let origin = ''

  beforeAll(async () => {
    expect(buildSite()).toBeNull()
    server = createServer((request, response) => {
      const file = fileOf(decodeURI((request.url ?? '').replace(/[?#].*/, '')))
      response.writeHead(file === null ? 404 : 200, { 'content-type': TYPES[extname(file ?? '')] ?? 'text/plain' })
      response.end(file === null ? '' : readFileSync(file))
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }, 900_000)

  afterAll(() => server.close())

  it('B-REF-10: the questions of newcomers find the page and the rank that site/questions.md says, the known ones and ten of twelve held back among the first two', async () => {
    const written = readFileSync(join(site, 'questions.md'), 'utf8')
    const questions = questionsOf(written)
    const page = await (await browser()).newPage()
    await page.goto(`${origin}${BASE}guide/quickstart`, { waitUntil: 'networkidle' })
    const rows: string[] = []
    const late: Question[] = []
    for (const each of questions) {
      const shown = await search(page, each.question)
      const rank = shown.findIndex((path) => each.pages.includes(path)) + 1
      rows.push(`${each.row} ${rank > 0 ? shown[rank - 1] : 'none'} | ${rank > 0 ? rank : '-'} |`)
      if (rank === 0 || rank > 2) late.push(each)
    }
    const [known, heldBack] = [false, true].map((is) => questions.filter((each) => each.heldBack === is).length)
    expect([known, heldBack]).toEqual([12, 12])
    // The rows as they should stand in site/questions.md.
    expect(rows.filter((row) => !written.includes(`${row}\n`))).toEqual([])
    expect(late.filter((each) => !each.heldBack)).toEqual([])
    expect(late.length).toBeLessThanOrEqual(2)
  })

  it('B-REF-12: llms.txt has the address of every page, and llms-full.txt their texts', () => {
    const index = readFileSync(join(dist, 'llms.txt'), 'utf8')
    const full = readFileSync(join(dist, 'llms-full.txt'), 'utf8')
    for (const path of ['guide/tools', 'recipes/chat', 'reference/errors']) expect(index).toContain(`${BASE}${path})`)
    for (const title of ['# Tools', '# Errors', '# Glossary', '# terret/kernel']) expect(full).toContain(`\n${title}\n`)
  })

  it('B-REF-11: no page asks another host, fails in the browser, or scrolls sideways at 390 and 1280, light and dark', async () => {
    const one = await browser()
    const wrong: string[] = []
    for (const width of [390, 1280]) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await one.newPage({ viewport: { width, height: 900 }, colorScheme })
        page.on('request', (request) => {
          if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) wrong.push(request.url())
        })
        page.on('pageerror', (error) => wrong.push(String(error)))
        for (const path of PAGES) {
          await page.goto(`${origin}${BASE}${path}`)
          await page.waitForSelector('.VPDoc, .VPHome')
          const over = await page.evaluate<number>('document.documentElement.scrollWidth - window.innerWidth')
          if (over > 0) wrong.push(`${path || 'index'} is ${over} px too wide at ${width}`)
        }
        const isDark = await page.evaluate<boolean>("document.documentElement.classList.contains('dark')")
        if (isDark !== (colorScheme === 'dark')) wrong.push(`${colorScheme} is not drawn`)
        await page.close()
      }
    }
    expect(wrong).toEqual([])
  })
})

const PAGES = [
  '',
  'guide/quickstart',
  'guide/models',
  'guide/cli',
  'guide/sandbox',
  'recipes/',
  'reference/',
  'reference/errors',
  'reference/routes',
  'reference/configuration',
  'reference/api/terret-harness',
  'reference/api/terret-kernel',
]

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.webp': 'image/webp',
  '.json': 'application/json',
}

/** As a host of static pages answers: `guide/tools` is `guide/tools.html`, and a folder is its index. */
function fileOf(path: string): string | null {
  if (!path.startsWith(BASE) || path.includes('..')) return null
  const file = join(dist, path.slice(BASE.length))
  const places = [file, `${file}.html`, join(file, 'index.html')]
  return places.find((place) => existsSync(place) && statSync(place).isFile()) ?? null
}

/** The pages that the search shows for a text, each once, in their order. */
async function search(page: Page, text: string): Promise<readonly string[]> {
  await page.keyboard.press('Control+k')
  const box = page.locator('#localsearch-input')
  await box.fill(text)
  await page.locator('#localsearch-list a.result').first().waitFor()
  // The list is drawn anew a moment after the last letter.
  await page.waitForTimeout(700)
  const results = await page.locator('#localsearch-list a.result').all()
  const links = await Promise.all(results.map(async (each) => (await each.getAttribute('href')) ?? ''))
  await page.keyboard.press('Escape')
  return [
    ...new Set(
      links.map((link) =>
        link
          .replace(BASE, '')
          .replace(/#.*/, '')
          .replace(/\.html$/, ''),
      ),
    ),
  ]
}
