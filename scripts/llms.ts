// Writes llms.txt: `npm run llms`. That it is up to date is checked by test/package.test.ts.
import { writeFileSync } from 'node:fs'
import { llmsIndex } from './llms-index.ts'

writeFileSync('llms.txt', llmsIndex('.'))
console.log('llms.txt is written')
