// Writes docs/behavior.md: `npm run behavior`. A test fails while the page is out of date.
import { writeFileSync } from 'node:fs'
import { behaviourPage, behavioursOf } from './behavior-page.ts'
import { readTests } from './test-names.ts'

const behaviours = behavioursOf(readTests('.'))
writeFileSync('docs/behavior.md', behaviourPage(behaviours))
console.log(`docs/behavior.md: ${behaviours.size} behaviours`)
