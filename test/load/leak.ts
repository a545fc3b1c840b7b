// A leak that is planted into a process of the soak before the program itself begins: the control of its slope test. What leaks is in
// TERRET_LEAK, and each leaks so much in a second that a run of a minute shows it.
import { appendFileSync, openSync } from 'node:fs'
import { join } from 'node:path'

const MEMORY_BYTES = 4_000_000
const DISK_BYTES = 4_000_000
const DESCRIPTORS = 3
const BLOCK_EVERY_MS = 100

const kept: Buffer[] = []
let seconds = 0

function leak(): void {
  seconds += 1
  const what = process.env['TERRET_LEAK']
  if (what === 'memory') kept.push(Buffer.alloc(MEMORY_BYTES, 1))
  else if (what === 'descriptors') for (let n = 0; n < DESCRIPTORS; n += 1) openSync('/dev/null', 'r')
  else if (what === 'disk') appendFileSync(join(process.env['TERRET_HOME'] ?? '', 'leak'), Buffer.alloc(DISK_BYTES, 1))
}

/** Each second it holds the process up a millisecond longer, ten times. */
function block(): void {
  const until = performance.now() + seconds
  while (performance.now() < until);
}

setInterval(leak, 1_000).unref()
if (process.env['TERRET_LEAK'] === 'latency') setInterval(block, BLOCK_EVERY_MS).unref()
