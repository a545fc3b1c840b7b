// Writes docs/reference and api: `npm run reference`. With --check it writes nothing and fails when a page is out of date.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { apiPages } from './reference/api-pages.ts'
import { readEntries } from './reference/api-reader.ts'
import { apiReports, REPORTS } from './reference/api-report.ts'
import { REFERENCE, tablePages } from './reference/table-pages.ts'

const entries = readEntries(process.cwd())
const pages = [...tablePages(), ...apiPages('.', entries)].map(([path, text]) => [join(REFERENCE, path), text] as const)
const reports = [...apiReports(entries)].map(([path, text]) => [join(REPORTS, path), text] as const)
const stale: string[] = []
for (const [file, text] of [...pages, ...reports]) {
  if (read(file) === text) continue
  stale.push(file)
  if (process.argv.includes('--check')) continue
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
if (process.argv.includes('--check') && stale.length > 0) {
  console.error(`Out of date: ${stale.join(', ')}. Run: npm run reference`)
  process.exitCode = 1
} else {
  console.log(
    `${REFERENCE}: ${pages.length} pages, ${REPORTS}: ${reports.length} reports, ${stale.length} written anew`,
  )
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
