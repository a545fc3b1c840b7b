// Writes docs/reference: `npm run reference`. With --check it writes nothing and fails when a page is out of date.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { apiPages } from './reference/api-pages.ts'
import { readEntries } from './reference/api-reader.ts'
import { REFERENCE, tablePages } from './reference/table-pages.ts'

const pages = new Map([...tablePages(), ...apiPages('.', readEntries(process.cwd()))])
const stale: string[] = []
for (const [path, text] of pages) {
  const file = join(REFERENCE, path)
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
  console.log(`${REFERENCE}: ${pages.size} pages, ${stale.length} written anew`)
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
