// The inspector beside the demo: up before the question, so that it can be answered there, and until Ctrl-C after the account.
import type { Call } from '../args.ts'
import { endOf } from '../exit.ts'
import { pagesIn } from '../../server/pages.ts'
import { openServer, PORT, type Serving } from '../serve/serving.ts'
import type { Place } from '../state/place.ts'

/** A text says why there is none. The demo goes on without it. */
export async function openInspector(place: Place, call: Call): Promise<Serving | string> {
  if (pagesIn() === null) return 'There is no inspector in this build (dist/web is missing): npm run build makes it.'
  try {
    return await served(place, call)
  } catch (error) {
    return `The inspector cannot be served: ${endOf(error).text}`
  }
}

/** At its usual port, or at any if that is in use. */
async function served(place: Place, call: Call): Promise<Serving> {
  try {
    return await openServer(place, call, { port: PORT })
  } catch {
    return openServer(place, call, { port: 0 })
  }
}
