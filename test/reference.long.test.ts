// What the compiler reads of the public names: that each has its sentence, and that the pages made from them are up to date.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { apiPages } from '../scripts/reference/api-pages.ts'
import { readEntries } from '../scripts/reference/api-reader.ts'
import { apiReports, REPORTS } from '../scripts/reference/api-report.ts'
import { REFERENCE } from '../scripts/reference/table-pages.ts'
import { repository } from './tidy/source.ts'

/** Fields and methods without a sentence. Write some, and lower it: it never grows. */
const MEMBERS_WITHOUT = 25

describe('the reference of the API', { timeout: 300_000 }, () => {
  const entries = readEntries(repository)

  it('B-REF-5: every public name of every entry has a sentence on its declaration', () => {
    const lacking = entries.flatMap(({ name: entry, own }) =>
      own.filter(({ says }) => says === '').map(({ name, file }) => `${entry}: ${name} in ${file}`),
    )
    expect(lacking).toEqual([])
  })

  it('B-REF-16: every option of a public function has a sentence', () => {
    const options = entries.flatMap(({ own }) => own.filter(({ name }) => name.endsWith('Options')))
    const lacking = options.flatMap(({ name, file, members }) =>
      members.filter(({ says }) => says === '').map((each) => `${name}.${each.name} in ${file}`),
    )
    expect(options.length).toBeGreaterThan(80)
    expect(lacking).toEqual([])
  })

  it('B-REF-6: fields and methods without a sentence only become fewer', () => {
    const members = entries.flatMap(({ own }) => own.flatMap((each) => each.members))
    const lacking = members.filter(({ says }) => says === '').length
    console.log(`members without a sentence: ${lacking} of ${members.length}`)
    expect(lacking).toBeLessThanOrEqual(MEMBERS_WITHOUT)
  })

  it('B-REF-7: the pages of the API and of events are up to date. If this fails, run: npm run reference', () => {
    const pages = apiPages(repository, entries)
    const stale = [...pages].filter(([path, text]) => readText(REFERENCE, path) !== text).map(([path]) => path)
    expect(stale).toEqual([])
    expect([...(pages.get('events.md') ?? '').matchAll(/^\| \[`[a-z]+\.[a-z_]+`\]\(#[^)]*\) \| \S/gm)]).toHaveLength(26)
  })

  it('B-REF-15: the reports in api/ are what each entry gives to a program. If this fails, run npm run reference, and look at what changed for users', () => {
    const reports = apiReports(entries)
    const stale = [...reports].filter(([path, text]) => readText(REPORTS, path) !== text).map(([path]) => path)
    expect(stale).toEqual([])
    expect(readdirSync(join(repository, REPORTS)).toSorted()).toEqual([...reports.keys()].toSorted())
    expect(reports.get('terret-tools.txt')).toContain('\nfunction askUserTool(): Tool\n')
    expect(reports.get('terret-tools.txt')).toContain("\ntype BashLine\n  type: 'bash_stdout_line'\n")
  })
})

function readText(folder: string, path: string): string | null {
  try {
    return readFileSync(join(repository, folder, path), 'utf8')
  } catch {
    return null
  }
}
