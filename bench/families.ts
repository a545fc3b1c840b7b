// The table of benches, in the order they are printed. A new bench is a file with a Family and a line here.
import { due } from './due.ts'
import { bytes, durable } from './durable.ts'
import { cli } from './cli.ts'
import { context } from './context.ts'
import type { Family } from './family.ts'
import { fanout } from './fanout.ts'
import { group } from './group.ts'
import { http } from './http.ts'
import { importing } from './import.ts'
import { install } from './install.ts'
import { loop } from './loop.ts'
import { many, parking } from './many.ts'
import { open } from './open.ts'
import { resume } from './resume.ts'
import { router } from './router.ts'
import { stream } from './stream.ts'
import { idle, latency } from './watch.ts'

export const families: readonly Family[] = [
  loop,
  fanout,
  many,
  parking,
  stream,
  http,
  durable,
  bytes,
  group,
  resume,
  open,
  due,
  importing,
  install,
  cli,
  idle,
  latency,
  router,
  context,
]
