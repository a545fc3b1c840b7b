// What the pages for newcomers quote is what the source says.
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
