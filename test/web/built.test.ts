// The pages as they are in the package: names, sizes, policy, licenses. `npm run build` makes them. How they look and act is tested with a
// browser, in the long tests.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { repository } from '../tidy/source.ts'

const DIST = join(repository, 'dist/web')
const html = (): string => readFileSync(join(DIST, 'index.html'), 'utf8')
const files = (): readonly string[] => readdirSync(join(DIST, 'assets'))
const sizeOf = (name: string): number => gzipSync(readFileSync(join(DIST, name)), { level: 9 }).length
const KB = 1_000

it('B-WEB-1: the first load of the pages is at most 120 kB and all of them at most 219 kB, compressed', () => {
  const first = [...html().matchAll(/(?:src|href)="\.\/(assets\/[^"]+)"/g)].map(([, name = '']) => name)
  expect(first.length).toBeGreaterThan(1)
  const sum = (names: readonly string[]): number => names.reduce((all, name) => all + sizeOf(name), 0)
  expect(sum(['index.html', ...first])).toBeLessThanOrEqual(120 * KB)
  expect(sum(['index.html', ...files().map((name) => `assets/${name}`)])).toBeLessThanOrEqual(219 * KB)
})

it('B-WEB-2: every file but the first page has a hash in its name, and the first page has no script and no style within it', () => {
  expect(files().every((name) => /-[\w-]{8}\.(?:js|css)$/.test(name))).toBe(true)
  expect(html()).not.toMatch(/<style|style=|<script(?![^>]*\ssrc=)/)
  expect(html()).not.toMatch(/https?:\/\//)
})

it('B-WEB-3: the licenses of all that is bundled into the pages are beside them', () => {
  const text = readFileSync(join(DIST, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
  for (const name of ['react', 'react-dom', 'wouter', '@tanstack/react-query', 'virtua', 'marked'])
    expect(text).toContain(`== ${name}\n`)
})

it('B-EXPORT-8: the page of an exported session is at most 189 kB without a log, compressed, and is no file of the server', () => {
  const page = readFileSync(join(repository, 'dist/export/session.html'))
  expect(gzipSync(page, { level: 9 }).length).toBeLessThanOrEqual(189 * KB)
  expect(page.includes('{{SESSION}}')).toBe(true)
  expect(page.includes('== react-dom\n')).toBe(true)
  expect(readdirSync(DIST).filter((name) => name.endsWith('.html'))).toEqual(['index.html'])
})
