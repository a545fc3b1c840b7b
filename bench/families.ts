// The table of benches, in the order they are printed. A new bench is a file with a Family and a line here.
import { bytes, durable } from './durable.ts'
import type { Family } from './family.ts'
import { fanout } from './fanout.ts'
import { group } from './group.ts'
import { http } from './http.ts'
import { importing } from './import.ts'
import { install } from './install.ts'
import { loop } from './loop.ts'
import { open } from './open.ts'
import { resume } from './resume.ts'
import { stream } from './stream.ts'
import { idle, latency } from './watch.ts'

export const families: readonly Family[] = [
  loop,
  fanout,
  stream,
  http,
  durable,
  bytes,
  group,
  resume,
  open,
  importing,
  install,
  idle,
  latency,
]
