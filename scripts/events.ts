// `npm run events`: writes the schema of events anew, after their types were changed. A test fails while it is out of date.
import { readFileSync, writeFileSync } from 'node:fs'
import { DECLARED, eventSchema } from './event-schema.ts'

writeFileSync('src/archive/event-schema.ts', eventSchema(DECLARED.map((path) => readFileSync(path, 'utf8'))))
