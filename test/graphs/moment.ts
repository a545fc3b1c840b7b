// Something that happens once, and can be waited for. For processes too, so it knows nothing of tests.
export type Moment = { readonly here: Promise<void>; readonly come: () => void }

export function moment(): Moment {
  let come = (): void => {}
  const here = new Promise<void>((resolve) => {
    come = resolve
  })
  return { here, come }
}
