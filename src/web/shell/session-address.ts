// The id of a session in the address of its page. An id may have any character, a percent sign too.
import type { BaseLocationHook } from 'wouter'

/** The router decodes every address once, and an id is decoded after that. So that its percent signs stay, they are encoded once more here. */
export function keepPercent(hook: BaseLocationHook): BaseLocationHook {
  return (router: unknown) => {
    const [path, go] = hook(router)
    return [path.replaceAll('%25', '%2525'), go]
  }
}

export function decodeId(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}
