// What a file is, as providers name it. Which files each of them takes stands with its protocol.

/** In lower case, without parameters, and the one name that is often written wrong as it is meant. */
export function mediaOf(media: string): string {
  const plain = media.toLowerCase().split(';')[0]?.trim() ?? ''
  return plain === 'image/jpg' ? 'image/jpeg' : plain
}
