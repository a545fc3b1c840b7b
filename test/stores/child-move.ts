// A process of its own for moves that are killed or have little memory: `move FROM TO` moves the file of a store, and
// `copy FROM TO` copies it by the methods that every store has.
import { fillStore, streamStore } from '../../src/stores/move/store-stream.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { move } from './moving.ts'

const [how = '', from = '', to = ''] = process.argv.slice(2)

if (how === 'move') process.stdout.write((await move(from, to)).digest)
else {
  const [source, target] = [sqlite(from), sqlite(to)]
  await Promise.all([source.open(), target.open()])
  process.stdout.write((await fillStore(target, streamStore(source), Date.now())).digest)
  await Promise.all([source.close(), target.close()])
}
