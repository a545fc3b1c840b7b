// `npm run release:notes -- v1.2.3`: what the changelog says of that version, and the report of the package, for the page of a release.
// Without a version: the report alone. It refuses a version that is not that of the package, or that the changelog does not have.
import { readFileSync } from 'node:fs'
import { changesOf } from './changes-of.ts'
import { packageReport } from './package-report.ts'

const tag = process.argv[2]
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string }
const changes = tag === undefined ? '' : changesOf(readFileSync('CHANGELOG.md', 'utf8'), tag, version)
console.log(`${changes}${await packageReport('.')}`)
