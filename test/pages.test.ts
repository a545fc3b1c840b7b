// What the pages for newcomers quote is what the source says.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')

it('B-DOC-2: each sentence that the page on troubleshooting shows as printed stands in the source', () => {
  const page = readFileSync(join(root, 'docs', 'guide', 'troubleshooting.md'), 'utf8')
  const shown = [...page.matchAll(/```text\n(.*)\n```/g)].map(([, sentence = '']) => sentence)
  expect(shown.length).toBeGreaterThan(15)
  const source = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => withoutSeams(readFileSync(join(root, 'src', name), 'utf8')))
    .join('\n')
  const missing = shown.flatMap((sentence) => partsOf(sentence).filter((part) => !source.includes(part)))
  expect(missing).toEqual([])
})

/** Long sentences are written as several texts with `+` between them, some of them in double quotes. */
function withoutSeams(source: string): string {
  return source.replace(/['"] \+\s+['"]/g, '').replaceAll("\\'", "'")
}

/** What differs stands as `…` in the page. Sentences are looked for one by one, as some are put together from constants. */
function partsOf(sentence: string): readonly string[] {
  return sentence.split(/"?…"?|(?<=\.) /).filter((part) => part.length > 3)
}

it('B-DOC-3: each behaviour that a guide names is written in docs/behavior.md', () => {
  const written = readFileSync(join(root, 'docs', 'behavior.md'), 'utf8')
  const guides = readdirSync(join(root, 'docs', 'guide')).filter((name) => name.endsWith('.md'))
  const named = guides.flatMap((name) => behavioursIn(readFileSync(join(root, 'docs', 'guide', name), 'utf8')))
  expect(named.length).toBeGreaterThan(30)
  expect(named.filter((id) => !written.includes(`- **${id}**`))).toEqual([])
})

/** `B-LINK-5 to 12` and `B-SERVE-7, 8` name the ends of the range and each of the list. */
function behavioursIn(page: string): readonly string[] {
  return [...page.matchAll(/(B-[A-Z][A-Z0-9]*-)(\d+(?:(?:,| to| and) \d+)*)/g)].flatMap(([, area = '', numbers = '']) =>
    [...numbers.matchAll(/\d+/g)].map(([number]) => `${area}${number}`),
  )
}

it('B-DOC-4: the program that docs/from compares others with runs as it stands there, and prints what its page says', () => {
  const page = readFileSync(join(root, 'docs', 'from', 'README.md'), 'utf8')
  const [, code, printed] = /```ts\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```/.exec(page) ?? []
  expect(code).toBe(readFileSync(join(root, 'examples', 'from', 'terret-refund.ts'), 'utf8'))
  // Compiled by `npm run build:all`, which the tests begin with.
  const script = join(root, '.build', 'examples', 'from', 'terret-refund.js')
  expect(execFileSync(process.execPath, [script], { cwd: root, encoding: 'utf8' })).toBe(printed)
})
