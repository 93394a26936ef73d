// Has pictures loaded, and keeps them as long as the document is there.
(addresses) => {
  const pictures = addresses.map((address) => {
    const picture = new Image();
    picture.src = address;
    return picture;
  });
  Object.defineProperty(window, '__spar_pictures', { value: pictures });
  // One that cannot be shown is none that changes later.
  return Promise.all(pictures.map((picture) => picture.decode().catch(() => {}))).then(() => pictures.length);
}
