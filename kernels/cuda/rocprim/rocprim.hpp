#error "rocPRIM is for AMD GPUs and the cpu device; on cuda use hipCUB (hipcub/hipcub.hpp)"
