// A process that makes a backup and does not come to its end: its check tells the parent and waits. Run by sqlite-backup.test.ts.
import { backUpFile } from '../../src/stores/sqlite/backup.ts'

const [from = '', to = ''] = process.argv.slice(2)
await backUpFile(from, to, () => {
  process.send?.('checking')
  return new Promise((resolve) => process.on('message', () => resolve()))
})
process.disconnect()
