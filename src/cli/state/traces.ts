// Tracing of the command line: to files in the data folder unless the configuration says otherwise, and to a collector if it names
// one. The part that writes files is loaded when the first run has settled, so that no start waits for it.
import type { HarnessOptions } from '../../index.ts'
import type { TracingPlace } from '../../tracing/index.ts'
import type { Setup } from './setup.ts'

type Tracing = NonNullable<HarnessOptions['tracing']>

/** Of each folder. What is swept can be made again: `terret export --format folder`. */
const KEEP = { files: 200, bytes: 64 * 1024 * 1024 }

export async function tracingFor(setup: Setup): Promise<Pick<HarnessOptions, 'tracing'>> {
  const { local = true, otlp: endpoint } = setup.settings.tracing ?? {}
  // An address that is none is refused before anything is begun.
  if (endpoint !== undefined) return { tracing: await traced(setup) }
  return local ? { tracing: (place) => later(() => traced(setup), place) } : {}
}

async function traced({ settings, env, home, folder }: Setup): Promise<Tracing> {
  const { local = true, otlp: endpoint, content = false } = settings.tracing ?? {}
  const { localTraces, otlp, tracing } = await import('../../tracing/index.ts')
  const capture = content ? 'content' : 'none'
  const sinks = [
    ...(local ? [localTraces({ dir: `${home.folder}/traces`, name: folder, capture, keep: KEEP, env })] : []),
    ...(endpoint === undefined ? [] : [otlp({ endpoint, capture, env })]),
  ]
  return tracing({ sinks })
}

/** Nobody waits for it, but whoever closes does. */
function later(make: () => Promise<Tracing>, place: TracingPlace): ReturnType<Tracing> {
  let tracer: Promise<ReturnType<Tracing> | null> | null = null
  const load = async (): Promise<ReturnType<Tracing> | null> => {
    try {
      return (await make())(place)
    } catch (error) {
      place.report(error)
      return null
    }
  }
  return {
    settled: (session, run) => {
      tracer ??= load()
      void tracer.then((ready) => ready?.settled(session, run))
    },
    close: async () => (await tracer)?.close(),
  }
}
