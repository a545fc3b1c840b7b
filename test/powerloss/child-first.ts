// The first process at a store: it opens the file and writes one session, and ends when it is told to.
//   node child-first.js EVIDENCE DATABASE SESSION
import { createInterface } from 'node:readline'
import { Appender, digestOf, type JournalLine, placesIn } from '../crash/evidence.ts'
import { openStore } from '../crash/open.ts'
import { CREATED, creation } from '../crash/stage.ts'

const [evidence = '', database = '', session = ''] = process.argv.slice(2)
const journal = new Appender<JournalLine>(placesIn(evidence).journal)
const store = openStore(database)
await store.open()
journal.add({ type: 'try', session, id: 'created', digest: digestOf(CREATED) })
const [receipt] = await store.commit([creation(session, store.now())])
journal.add({ type: 'ack', session, id: 'created', seq: receipt?.seqs[0] ?? 0, verb: 'create' })
process.stdout.write('written\n')
for await (const line of createInterface({ input: process.stdin })) if (line === 'stop') process.exit(0)
process.exit(2)
