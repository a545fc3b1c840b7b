// The pages of docs/reference that are made from tables of the source alone. Those of the API need a compiler: api-pages.ts.
import { commandsPage } from './commands-page.ts'
import { configurationPage } from './configuration-page.ts'
import { errorsPage } from './errors-page.ts'
import { routesPage } from './routes-page.ts'

export const REFERENCE = 'docs/reference'

/** The text of each page by its path in `docs/reference`. */
export function tablePages(): ReadonlyMap<string, string> {
  return new Map([
    ['configuration.md', configurationPage()],
    ['commands.md', commandsPage()],
    ['routes.md', routesPage()],
    ['errors.md', errorsPage()],
  ])
}
